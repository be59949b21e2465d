#include "fedsmooth/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fedsmooth {

int available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return std::max(1U, std::thread::hardware_concurrency());
  }
  return CPU_COUNT(&allowed);
}

struct Workers::State {
  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void(int)>* job = nullptr;
  int64_t generation = 0;  // counts the calls of run()
  int busy = 0;
  bool stop = false;
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  void work(int worker) {
    int64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      lock.unlock();
      std::exception_ptr caught;
      try {
        (*job)(worker);
      } catch (...) {
        caught = std::current_exception();
      }
      lock.lock();
      if (caught && !failure) failure = caught;
      if (--busy == 0) changed.notify_all();
    }
  }
};

Workers::Workers(int count) : state_(std::make_unique<State>()) {
  for (int i = 0; i < count; ++i) {
    state_->threads.emplace_back([state = state_.get(), i] { state->work(i); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int Workers::count() const { return static_cast<int>(state_->threads.size()); }

void Workers::run(const std::function<void(int)>& job) {
  std::unique_lock lock(state_->mutex);
  state_->job = &job;
  state_->busy = count();
  state_->failure = nullptr;
  ++state_->generation;
  state_->changed.notify_all();
  state_->changed.wait(lock, [&] { return state_->busy == 0; });
  if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace fedsmooth
