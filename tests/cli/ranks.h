// Runs the program on many ranks of this machine, more of them than it has cores.
#pragma once

#include <vector>

#include "tests/cli/program.h"

namespace fedsmooth {

/// Skips where mpirun is missing.
class RanksTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
#ifdef FEDSMOOTH_MPIRUN
    // Debian's mpirun refuses root without them; the tests may well be run in a container.
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    data_ = write_tiny_data();
#else
    GTEST_SKIP() << "no mpirun";
#endif
  }

  /// `count` ranks of `program arguments`, each of which leaves its process number in a file.
  std::string ranks_of(const std::string& program, int count, const std::string& arguments) const {
    return "-n " + std::to_string(count) + " sh -c 'echo $$ > " + path("pid.") +
           "$OMPI_COMM_WORLD_RANK; exec " + program + " " + arguments + "'";
  }

  pid_t start_ranks(const std::string& what) {
#ifdef FEDSMOOTH_MPIRUN
    return start_command(std::string(FEDSMOOTH_MPIRUN) +
                         " -q --oversubscribe --mca odls_base_sigkill_timeout " +
                         std::to_string(grace_) + " " + what);
#else
    return start_command("false " + what);
#endif
  }
  pid_t start_ranks(int count, const std::string& arguments) {
    return start_ranks(ranks_of(FEDSMOOTH_PROGRAM, count, arguments));
  }
  Outcome run_ranks(int count, const std::string& arguments) {
    return finish(start_ranks(count, arguments));
  }

  void kill_rank(int rank, int signal) const {
    ::kill(std::stoi(read_file(path("pid." + std::to_string(rank)))), signal);
  }

  std::string data_;  // options that choose the data
  int grace_ = 0;     // seconds between mpirun's asking ranks to end and its killing them
};

/// As expect_refused(), but mpirun may add something of its own.
inline void expect_told_once(const Outcome& outcome, const std::string& what) {
  EXPECT_NE(outcome.status, 0);
  const size_t first = outcome.err.find(what);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(what, first + 1), std::string::npos) << outcome.err;
}

}  // namespace fedsmooth
