// Where a job runs, who hears of it, and how it is stopped. A job is what a command does, without a
// terminal: it reads and writes files, checks what makes its result sound, and throws Error for the
// user's mistakes.
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

/// Shows how far a job is, from its first step until it is destroyed.
class Progress {
 public:
  virtual ~Progress() = default;
  /// One more step is done. Called by one thread at a time.
  virtual void step(const std::string& note) = 0;
};

/// Called from any thread, as are all functions of a Context.
using Say = std::function<void(const std::string& line)>;

struct Context {
  std::string device = "auto";  // auto, cpu or cuda
  int threads = 0;              // 0: one per core

  /// Asked often. Once it says so, the job saves what is done and throws Interrupted.
  Stop stopped = [] { return false; };
  /// What a job is at, and what the user should know. Nothing is printed by default.
  Say note = [](const std::string&) {};
  Say warn = [](const std::string&) {};
  /// Begins `total` steps, of which `done` were done by an earlier job. May be empty.
  std::function<std::unique_ptr<Progress>(const std::string& what, int64_t done, int64_t total)>
      progress;

  /// Those that do the job together; of a sweep, a group of them. Null: this process alone.
  Ranks* ranks = nullptr;
};

Ranks& ranks_of(const Context& context);

/// Never null.
std::unique_ptr<Progress> begin_progress(const Context& context, const std::string& what,
                                         int64_t done, int64_t total);

/// Refuses a device or a number of threads that cannot be meant. Jobs do it before anything else.
void check_context(const Context& context);

/// Number of threads asked for, or one per core that this rank has to itself.
int thread_count(const Context& context);

}  // namespace fedsmooth::jobs
