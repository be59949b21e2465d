#include "fedsmooth/jobs/training/checkpoints.h"

#include <chrono>
#include <exception>

namespace fedsmooth::jobs {

Checkpoints::Checkpoints(const Run& run, const Network& network, std::function<Provenance()> origin,
                         Stop stopped, bool among_ranks)
    : run_(run), network_(network), origin_(std::move(origin)), stopped_(std::move(stopped)) {
  if (among_ranks) watcher_ = std::thread([this] { watch(); });
}

Checkpoints::~Checkpoints() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

void Checkpoints::add(const ServerState& state, bool due) {
  const std::lock_guard lock(mutex_);
  last_ = state;
  saved_ = false;
  if (!due) return;
  write_checkpoint(run_, network_, last_, origin_());
  saved_ = true;
}

void Checkpoints::watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_()) {
    if (ended_.wait_for(lock, std::chrono::milliseconds(50), [this] { return end_; })) return;
  }
  if (saved_) return;
  try {
    write_checkpoint(run_, network_, last_, origin_());
  } catch (const std::exception&) {  // add() reports a failure if the round still ends
  }
}

}  // namespace fedsmooth::jobs
