// fedsmooth: one program, one sub-command per verb. Exit status: 0 done; 2 the user's mistake; 1 a
// bug; 130 interrupted, with the state saved.
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"

int main(int argc, char** argv) {
  using namespace fedsmooth;
  use_single_threaded_operators();
  cli::watch_signals();
  try {
    return cli::run_command_line(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const cli::Interrupted& stop) {
    fmt::print(stderr, "{}\n", stop.message);
    return 130;
  } catch (const c10::Error& bug) {
    fmt::print(stderr, "bug: {}\n", bug.what_without_backtrace());
    return 1;
  } catch (const std::exception& bug) {
    fmt::print(stderr, "bug: {}\n", bug.what());
    return 1;
  }
}
