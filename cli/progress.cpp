#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace fedsmooth::cli {
namespace {

using std::chrono::steady_clock;

constexpr auto kBarInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(20);
constexpr int kBarWidth = 24;
constexpr const char* kClearLine = "\r\033[K";

double seconds(steady_clock::duration d) { return std::chrono::duration<double>(d).count(); }

std::string duration(double s) {
  const int64_t whole = std::llround(s);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

}  // namespace

void print_error(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

void print_status(const std::string& line) {
  print_error((isatty(STDERR_FILENO) != 0 ? kClearLine : "") + line);
}

namespace {

class Bar : public jobs::Progress {
 public:
  Bar(std::string what, int64_t done, int64_t total)
      : what_(std::move(what)), first_(done), done_(done), total_(total) {
    if (terminal_) show("");
  }
  ~Bar() override {
    if (terminal_) std::fputs(kClearLine, stderr);
  }

  void step(const std::string& note) override {
    ++done_;
    const auto now = steady_clock::now();
    const bool due = terminal_ ? now - shown_ >= kBarInterval : now - shown_ >= kLineInterval;
    if (!(due || done_ == total_)) return;
    shown_ = now;
    show(note);
  }

 private:
  void show(const std::string& note) const {
    const double elapsed = seconds(shown_ - start_);
    const double rate = elapsed > 0 ? static_cast<double>(done_ - first_) / elapsed : 0;
    const std::string left =
        rate > 0 ? duration(static_cast<double>(total_ - done_) / rate) : std::string("?");
    const std::string line =
        fmt::format("{}/{}  {:.3g}/s  {} left  {}", done_, total_, rate, left, note);
    if (terminal_) {
      const auto filled = static_cast<int>(kBarWidth * done_ / std::max<int64_t>(1, total_));
      const std::string bar =
          fmt::format("{}{} [{}{}] {}", kClearLine, what_, std::string(filled, '#'),
                      std::string(kBarWidth - filled, '.'), line);
      std::fputs(bar.c_str(), stderr);
    } else {
      print_error(what_ + " " + line);
    }
    std::fflush(stderr);
  }

  std::string what_;
  int64_t first_, done_, total_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  steady_clock::time_point start_ = steady_clock::now(), shown_ = start_;
};

}  // namespace

std::unique_ptr<jobs::Progress> show_progress(const std::string& what, int64_t done,
                                              int64_t total) {
  return std::make_unique<Bar>(what, done, total);
}

}  // namespace fedsmooth::cli
