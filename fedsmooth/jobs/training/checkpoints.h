// Writes the checkpoints of a run. mpirun ends an interrupted job a second after it told the ranks,
// which may be before the round ends. Among ranks, therefore, the state of the last round is kept
// in memory, and a thread saves it as soon as the user asks to stop.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {

class Checkpoints {
 public:
  /// `run` and `network` must outlive it. `origin` and `stopped` may be called from a thread of its
  /// own.
  Checkpoints(const Run& run, const Network& network, std::function<Provenance()> origin,
              Stop stopped, bool among_ranks);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Takes the state after a round, and saves it if `due`. Otherwise, among ranks, it is saved when
  /// the user asks to stop. Throws an Error if a state that is due cannot be written.
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
  bool saved_ = true;  // last_ is on disk
  std::thread watcher_;
};

}  // namespace fedsmooth::jobs
