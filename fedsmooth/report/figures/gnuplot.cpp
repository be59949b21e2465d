#include "fedsmooth/report/figures/gnuplot.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"

namespace fedsmooth {
namespace {

/// A file without a name: it cannot be left behind, and unlike a pipe it never blocks.
class ScratchFile {
 public:
  ScratchFile() : file_(std::tmpfile(), &std::fclose) {
    if (!file_) throw Error("gnuplot: no temporary file: {}", std::strerror(errno));
  }

  int descriptor() const { return ::fileno(file_.get()); }

  void write(std::string_view bytes) {
    const size_t written = std::fwrite(bytes.data(), 1, bytes.size(), file_.get());
    if (written != bytes.size() || std::fflush(file_.get()) != 0) {
      throw Error("gnuplot: cannot write the script: {}", std::strerror(errno));
    }
    std::rewind(file_.get());
  }

  std::string read() {
    std::rewind(file_.get());
    std::string bytes;
    char chunk[1 << 14];
    while (const size_t count = std::fread(chunk, 1, sizeof(chunk), file_.get())) {
      bytes.append(chunk, count);
    }
    return bytes;
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

pid_t spawn_gnuplot(const ScratchFile& in, const ScratchFile& out, const ScratchFile& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  // The user's own .gnuplot must not change our figures.
  char name[] = "gnuplot", defaults[] = "--default-settings";
  char* const arguments[] = {name, defaults, nullptr};
  pid_t process = 0;
  const int status = ::posix_spawnp(&process, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status == ENOENT) {
    throw Error("gnuplot: not found, and figures need it; apt-get install gnuplot-nox");
  }
  if (status != 0) throw Error("gnuplot: cannot be started: {}", std::strerror(status));
  return process;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw Error("gnuplot: lost: {}", std::strerror(errno));
  }
  return status;
}

}  // namespace

std::string run_gnuplot(std::string_view script) {
  ScratchFile in, out, errors;
  in.write(script);
  const int status = wait_for(spawn_gnuplot(in, out, errors));
  std::string picture = out.read();
  if (status != 0 || picture.empty()) {
    throw Error("gnuplot: failed with status {}: {}", status, shorten(errors.read(), 300));
  }
  return picture;
}

std::string quote_for_gnuplot(std::string_view text) {
  std::string literal = "\"";
  for (const char c : one_line(text)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && std::isalpha(byte);
    literal += plain ? std::string(1, c) : fmt::format("\\{:03o}", byte);
  }
  return literal + "\"";
}

}  // namespace fedsmooth
