// fedsmooth: one program, one sub-command per verb. Exit status: 0 done; 2 the user's mistake; 1 a
// bug; 130 interrupted, with the state saved.
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/rank_jobs.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"

namespace fedsmooth::cli {
namespace {

// An error before the ranks met is either everyone's, and told once, or kept from those who wait.
int run_on(Ranks& ranks, int argc, char** argv) {
  try {
    return run_command_line(argc, argv, ranks);
  } catch (const std::exception&) {
    if (!ranks.met()) agree(ranks, []() -> nlohmann::json { throw; });
    throw;
  }
}

int run_and_explain(const std::function<int()>& run, const std::string& who) {
  try {
    return run();
  } catch (const Error& error) {
    fmt::print(stderr, "{}{}\n", who, error.what());
    return 2;
  } catch (const Refused&) {
    return 0;  // rank 0 tells
  } catch (const std::filesystem::filesystem_error& error) {
    fmt::print(stderr, "{}{}: {}\n", who, error.path1().string(), error.code().message());
    return 2;
  } catch (const Interrupted& stop) {
    fmt::print(stderr, "{}\n", stop.message);
    return 130;
  } catch (const c10::Error& bug) {
    fmt::print(stderr, "{}bug: {}\n", who, bug.what_without_backtrace());
    return 1;
  } catch (const std::exception& bug) {
    // fmt::print throws when it cannot write, which main() tells.
    if (std::ferror(stdout) != 0) return 0;
    fmt::print(stderr, "{}bug: {}\n", who, bug.what());
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
  std::unique_ptr<Ranks> ranks;
  int status = cli::run_and_explain(
      [&] {
        ranks = std::make_unique<Ranks>();
        return 0;
      },
      "");
  if (!ranks) return status;
  const bool leads = ranks->leads();
  if (!leads) std::freopen("/dev/null", "w", stdout);
  status = cli::run_and_explain([&] { return cli::run_on(*ranks, argc, argv); },
                                leads ? "" : fmt::format("rank {}: ", ranks->rank()));
  // The others may wait for this rank, and it cannot tell them otherwise.
  if (status != 0 && (!leads || !ranks->in_step())) ranks->end_all(status);
  if (status == 0 && cli::output_is_lost()) {
    fmt::print(stderr, "stdout: cannot be written; is its disk full?\n");
    return 2;
  }
  return status;
}
