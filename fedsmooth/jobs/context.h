// The context of a job: its device and threads, the receivers of its messages, and how it is
// stopped. A job does the work of a command without a terminal: it reads and writes files, makes
// the checks that its result needs to be sound, and throws Error for mistakes of the user.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fedsmooth/base/stop.h"

namespace fedsmooth {
class Ranks;
}

namespace fedsmooth::jobs {

/// Shows the progress of a job, from its first step until this object is destroyed.
class Progress {
 public:
  virtual ~Progress() = default;
  /// Reports one more finished step. Called by one thread at a time.
  virtual void step(const std::string& note) = 0;
};

/// Receives one line of text. Any thread may call it, as it may call all functions of a Context.
using Say = std::function<void(const std::string& line)>;

/// A job only reads its Context, which must outlive it.
struct Context {
  std::string device = "auto";  // auto, cpu or cuda
  int threads = 0;              // 0: one per core

  /// Called often. Once it returns true, the job saves its state and throws Interrupted.
  Stop stopped = [] { return false; };
  /// Receive what a job is doing (`note`) and what the user should know (`warn`). By default
  /// nothing is printed.
  Say note = [](const std::string&) {};
  Say warn = [](const std::string&) {};
  /// Begins a display of `total` steps, of which an earlier job has done `done`. May be empty.
  std::function<std::unique_ptr<Progress>(const std::string& what, int64_t done, int64_t total)>
      progress;

  /// The processes that do the job together, in a sweep a part of them. Null: only this process.
  Ranks* ranks = nullptr;
};

/// Returns context.ranks, or a single rank, this process, if that is null.
Ranks& ranks_of(const Context& context);

/// Calls context.progress, and returns a display that does nothing if that is empty. Never null.
std::unique_ptr<Progress> begin_progress(const Context& context, const std::string& what,
                                         int64_t done, int64_t total);

/// Throws an Error for an unknown device or an impossible number of threads. Every job that trains
/// or evaluates a model calls it first.
void check_context(const Context& context);

/// Returns the number of threads that the context asks for, or one per core of this rank.
int thread_count(const Context& context);

}  // namespace fedsmooth::jobs
