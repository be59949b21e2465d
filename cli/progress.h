// A progress bar with rate and time left on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fedsmooth::cli {

/// A line on stderr. What cannot be written there is lost, never an exception.
void print_error(const std::string& line);

/// The same in the place of a bar that may be there.
void say(const std::string& line);

class Progress {
 public:
  /// `done` of `total` steps were done by an earlier run and do not count for the rate.
  Progress(std::string what, int64_t done, int64_t total, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const std::string& note);

 private:
  void show(const std::string& note);

  std::string what_;
  int64_t first_, done_, total_;
  bool quiet_, terminal_;
  std::chrono::steady_clock::time_point start_, shown_;
};

}  // namespace fedsmooth::cli
