// fedsmooth: one program, one sub-command per verb. Exit status: 0 done; 2 the user's mistake; 1 a
// bug; 130 interrupted, with the state saved.
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"

namespace fedsmooth::cli {
namespace {

int run_and_explain(int argc, char** argv) {
  try {
    return run_command_line(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {
    fmt::print(stderr, "{}: {}\n", error.path1().string(), error.code().message());
    return 2;
  } catch (const Interrupted& stop) {
    fmt::print(stderr, "{}\n", stop.message);
    return 130;
  } catch (const c10::Error& bug) {
    fmt::print(stderr, "bug: {}\n", bug.what_without_backtrace());
    return 1;
  } catch (const std::exception& bug) {
    // fmt::print throws when it cannot write, which main() tells.
    if (std::ferror(stdout) != 0) return 0;
    fmt::print(stderr, "bug: {}\n", bug.what());
    return 1;
  }
}

// A full disk may show only when the last bytes leave the buffer.
bool output_is_lost() { return std::fflush(stdout) != 0 || std::ferror(stdout) != 0; }

}  // namespace
}  // namespace fedsmooth::cli

int main(int argc, char** argv) {
  using namespace fedsmooth;
  use_single_threaded_operators();
  cli::watch_signals();
  const int status = cli::run_and_explain(argc, argv);
  if (status == 0 && cli::output_is_lost()) {
    fmt::print(stderr, "stdout: cannot be written; is its disk full?\n");
    return 2;
  }
  return status;
}
