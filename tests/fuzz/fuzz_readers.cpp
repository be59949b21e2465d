// fuzz_readers RUNS [SEED]: damages valid files at random and reads them, RUNS times per reader
// (RUNS / 10 for the slow one).
//
// A reader may accept what it gets or refuse it with an Error of one line; what it accepts must
// survive being written and read again. All else is a bug: another exception, a crash, a sanitizer
// report, ten seconds without an answer. Each reader runs in a process of its own, so that the
// failing iteration is known whatever happens; the same RUNS and SEED repeat it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/random.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/readers.h"

namespace fedsmooth {
namespace {

constexpr unsigned kPatience = 10;  // seconds for one file

// Why the outcome is a bug; empty if it is none.
std::string complaint(const std::function<void()>& read, int64_t& accepted) {
  try {
    read();
    ++accepted;
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.empty()) return "an Error without a message";
    if (message.find('\n') != std::string::npos) return "an Error of two lines: " + message;
  } catch (const std::exception& error) {
    return std::string("an exception that is no Error: ") + error.what();
  }
  return "";
}

// Runs in the child process. `iteration` is shared with the parent.
int fuzz(const Reader& reader, int64_t runs, uint64_t seed, std::atomic<int64_t>& iteration) {
  const std::vector<std::string> seeds = reader.seeds();
  for (const std::string& valid : seeds) reader.read(valid);  // else the fuzzing reaches nothing
  int64_t accepted = 0;
  for (iteration = 0; iteration < runs; ++iteration) {
    Random random(fold(Key{seed}, static_cast<uint64_t>(iteration.load())).value);
    const std::string damaged = reader.mutate(seeds[below(random, seeds.size())], seeds, random);
    alarm(kPatience);
    const std::string found = complaint([&] { reader.read(damaged); }, accepted);
    alarm(0);
    if (!found.empty()) {
      std::fprintf(stderr, "%s\n", found.c_str());
      return 1;
    }
  }
  std::printf("%s: %lld runs, %lld accepted\n", reader.name, static_cast<long long>(runs),
              static_cast<long long>(accepted));
  return 0;
}

// Whether all went well.
bool fuzz_apart(const Reader& reader, int64_t runs, uint64_t seed) {
  void* memory = mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error("mmap failed");
  auto& iteration = *new (memory) std::atomic<int64_t>(-1);
  const pid_t child = fork();
  if (child < 0) throw Error("fork failed");
  if (child == 0) {
    int status = 1;
    try {
      status = fuzz(reader, runs, seed, iteration);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a valid file was refused: %s\n", error.what());
    }
    std::exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!good) {
    std::printf("FAILED: reader %s, seed %llu, iteration %lld: %s %d\n", reader.name,
                static_cast<unsigned long long>(seed), static_cast<long long>(iteration.load()),
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  std::fflush(stdout);
  munmap(memory, sizeof(std::atomic<int64_t>));
  return good;
}

}  // namespace
}  // namespace fedsmooth

int main(int argc, char** argv) {
  const int64_t runs = argc > 1 ? std::atoll(argv[1]) : 0;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (runs < 1 || argc > 3) {
    std::fprintf(stderr, "usage: fuzz_readers RUNS [SEED]\n");
    return 2;
  }
  bool good = true;
  for (const fedsmooth::Reader& reader : fedsmooth::readers()) {
    good = fedsmooth::fuzz_apart(reader, (runs + reader.one_in - 1) / reader.one_in, seed) && good;
  }
  return good ? 0 : 1;
}
