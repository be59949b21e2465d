#include "fedsmooth/jobs/curl.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/text.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr int64_t kMegabyte = 1'000'000;

struct Notes {
  fs::path headers, errors;  // files: headers of the server's answer, curl's error messages
};

pid_t spawn_curl(const std::string& address, const fs::path& path, int64_t limit,
                 const Notes& notes) {
  const bool secure = address.starts_with("https://");
  // clang-format off
  std::vector<std::string> words = {
      "curl", "--fail", "--location", "--silent", "--show-error",
      "--proto", secure ? "=https" : "=http,https,ftp,file",
      "--proto-redir", secure ? "=https" : "=http,https",
      "--max-filesize", std::to_string(limit),
      "--connect-timeout", "30", "--speed-limit", "1000", "--speed-time", "60",
      "--dump-header", notes.headers, "--output", path, "--url", address};
  // clang-format on
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, notes.errors.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t process = 0;
  const int status = ::posix_spawnp(&process, "curl", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status == ENOENT) {
    throw Error("curl: not found; apt-get install curl, or give the archives by --from DIR");
  }
  if (status != 0) throw Error("curl: cannot be started: {}", std::strerror(status));
  return process;
}

// Returns the last length that the server's headers state; 0 if they state none.
int64_t stated_length(const fs::path& headers) {
  std::error_code status;
  if (!fs::exists(headers, status)) return 0;
  std::string text = read_file(headers);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::string_view kField = "\ncontent-length:";
  const size_t at = text.rfind(kField);
  if (at == std::string::npos) return 0;
  const char* digits = text.data() + at + kField.size();
  while (*digits == ' ') ++digits;
  int64_t length = 0;
  std::from_chars(digits, text.data() + text.size(), length);
  return length;
}

// Shows one step per megabyte, once the length is known.
class DownloadProgress {
 public:
  DownloadProgress(const Context& context, fs::path path, fs::path headers)
      : context_(context), path_(std::move(path)), headers_(std::move(headers)) {}

  void show() {
    std::error_code status;
    const auto bytes = static_cast<int64_t>(fs::file_size(path_, status));
    if (status || bytes < kMegabyte) return;
    if (!progress_) {
      const int64_t length = stated_length(headers_);
      if (length < bytes) return;
      progress_ =
          begin_progress(context_, "MB of " + path_.filename().string(), 0, length / kMegabyte);
    }
    for (; shown_ < bytes / kMegabyte; ++shown_) progress_->step("");
  }

 private:
  const Context& context_;
  fs::path path_, headers_;
  std::unique_ptr<Progress> progress_;
  int64_t shown_ = 0;
};

// Terminates curl if it is destroyed before curl has ended.
class Process {
 public:
  explicit Process(pid_t id) : id_(id) {}
  ~Process() {
    if (id_ == 0) return;
    ::kill(id_, SIGTERM);
    ::waitpid(id_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Returns whether curl has ended, and then sets `status` as waitpid() does.
  bool ended(int& status) {
    const pid_t found = ::waitpid(id_, &status, WNOHANG);
    if (found < 0 && errno != EINTR) throw Error("curl: lost: {}", std::strerror(errno));
    if (found <= 0) return false;
    id_ = 0;
    return true;
  }

 private:
  pid_t id_;
};

}  // namespace

void download(const std::string& address, const fs::path& path, int64_t limit,
              const Context& context) {
  const Notes notes = {path.string() + ".headers", path.string() + ".errors"};
  Process curl(spawn_curl(address, path, limit, notes));
  DownloadProgress progress(context, path, notes.headers);
  int status = 0;
  const auto check_stop = [&] {
    if (context.stopped()) throw Interrupted{fmt::format("{}: download stopped", address)};
  };
  // Before version 8.4, curl's own limit applies only if the server states a length.
  const auto check_size = [&] {
    std::error_code none_yet;
    const uintmax_t size = fs::file_size(path, none_yet);
    if (!none_yet && size > static_cast<uintmax_t>(limit)) {
      throw Error("{}: is larger than {} bytes; the download was given up", one_line(address),
                  limit);
    }
  };
  while (!curl.ended(status)) {
    check_stop();
    check_size();
    progress.show();
    std::this_thread::sleep_for(kPoll);
  }
  check_size();
  if (status != 0) {
    check_stop();  // Ctrl-C ends curl, too: report the interruption, not curl's failure
    std::string said = read_file(notes.errors);
    said = shorten(said.substr(0, said.find('\n')), 200);
    throw Error("{}: cannot be downloaded: {}", one_line(address),
                said.empty() ? fmt::format("curl ended with status {}", status) : said);
  }
}

}  // namespace fedsmooth::jobs
