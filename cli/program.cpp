#include "cli/program.h"

#include <fcntl.h>
#include <malloc.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/advice.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"

namespace fedsmooth::cli {
namespace {

// An error before the ranks met is either everyone's, and printed once, or not shown to ranks that
// wait.
[[noreturn]] void rethrow_together(Ranks& ranks) {
  const std::exception_ptr thrown = std::current_exception();
  if (!ranks.met()) jobs::do_together(ranks, [&] { std::rethrow_exception(thrown); });
  std::rethrow_exception(thrown);
}

// How a rank other than 0 begins what it says.
std::string rank_prefix(const Ranks* ranks) {
  return ranks == nullptr || ranks->leads() ? "" : "rank " + std::to_string(ranks->rank()) + ": ";
}

int report_out_of_memory(const Ranks* ranks) {
  print_error(rank_prefix(ranks) + "out of memory");
  return 2;
}

// `ranks` is set as soon as they have met.
int run_and_explain(int argc, char** argv, std::unique_ptr<Ranks>& ranks) {
  try {
    ranks = std::make_unique<Ranks>();
    keep_command_line(argc, argv, ranks->size());
    // Only rank 0 prints.
    if (!ranks->leads() && std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
    try {
      return run_command_line(argc, argv, *ranks);
    } catch (const std::exception&) {
      rethrow_together(*ranks);
    }
  } catch (const Error& error) {
    print_error(rank_prefix(ranks.get()) + complete_advice(error.what()));
    return 2;
  } catch (const jobs::Refused&) {
    return 0;  // rank 0 reports it
  } catch (const std::filesystem::filesystem_error& error) {
    print_error(rank_prefix(ranks.get()) + error.path1().string() + ": " + error.code().message());
    return 2;
  } catch (const Interrupted& stop) {
    print_error(rank_prefix(ranks.get()) + complete_advice(stop.message));
    return 130;
  } catch (const std::bad_alloc&) {
    return report_out_of_memory(ranks.get());
  } catch (const std::exception& bug) {
    // fmt::print throws when it cannot write, which main() reports.
    if (std::ferror(stdout) != 0) return 0;
    print_error(rank_prefix(ranks.get()) + "bug: " + bug.what());
    return 1;
  }
}

// Where a standard stream is closed, the next file to be opened would get its number, and what is
// printed would go into that file.
void open_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == 0 ? O_RDONLY : O_WRONLY);
  }
}

// Keeps up to a gigabyte that a round frees for the next round. New memory comes from the kernel
// page by page, which takes seven times as long as copying a client's weights.
void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 64 << 20);
#endif
}

// A full disk may show only when the last bytes leave the buffer.
bool output_is_lost() { return std::fflush(stdout) != 0 || std::ferror(stdout) != 0; }

}  // namespace

int run_program(int argc, char** argv) {
  open_standard_streams();
  keep_freed_memory();
  watch_signals();
  std::unique_ptr<Ranks> ranks;
  const int status = run_and_explain(argc, argv, ranks);
  // The others may wait for this rank, and there is no other way to let them know.
  if (status != 0 && ranks && !(ranks->leads() && ranks->in_step())) ranks->end_all(status);
  if (status == 0 && output_is_lost()) {
    std::fputs("stdout: cannot be written; is its disk full?\n", stderr);
    return 2;
  }
  return status;
}

}  // namespace fedsmooth::cli
