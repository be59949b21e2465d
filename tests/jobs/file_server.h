// A folder served over HTTP on this machine, by Python's own server, for tests of downloads.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace fedsmooth {

class FileServer {
 public:
  enum class Kind {
    kPlain,
    kSlow,     // every answer announces 100 MB, sends two and stalls
    kEndless,  // every answer states no length and has no end
  };
  explicit FileServer(const std::filesystem::path& folder, Kind kind = Kind::kPlain) {
    if (std::system("command -v curl >/dev/null && command -v python3 >/dev/null") != 0) return;
    int ends[2] = {};
    if (::pipe(ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
      ::execlp("python3", "python3", "-uc", kProgram, folder.c_str(),
               std::to_string(static_cast<int>(kind)).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    FILE* out = ::fdopen(ends[0], "r");
    if (std::fscanf(out, "%d", &port_) != 1) port_ = 0;
    std::fclose(out);
  }
  ~FileServer() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  bool runs() const { return port_ != 0; }
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  static constexpr const char* kProgram = R"(
import functools, http.server, sys, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "100000000")
        self.end_headers()
        self.wfile.write(bytes(2000000))
        time.sleep(60)
class Endless(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(bytes(100000))
            time.sleep(0.001)
plain = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), [plain, Slow, Endless][int(sys.argv[2])])
print(server.server_port)
server.serve_forever()
)";
  pid_t process_ = 0;
  int port_ = 0;
};

}  // namespace fedsmooth
