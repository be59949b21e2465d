// The checkpoints of a run. Among ranks, mpirun ends a job that is interrupted a second after it
// told the ranks, which is sooner than a round may end; so the last round's state is kept, and
// saved by a thread as soon as the user asks to stop.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {

class Checkpoints {
 public:
  /// What is referred to outlives it.
  Checkpoints(const Run& run, const Network& network, std::function<Provenance()> origin,
              Stop stopped, bool among_ranks);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// After a round: saves the state if it is `due`, or later if the user asks to stop.
  void add(const ServerState& state, bool due);

 private:
  void watch();

  const Run& run_;
  const Network& network_;
  std::function<Provenance()> origin_;
  Stop stopped_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  ServerState last_;
  bool saved_ = true;  // whether last_ is
  std::thread watcher_;
};

}  // namespace fedsmooth::jobs
