// Runs the program as a user does.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "fedsmooth/base/file.h"

namespace fedsmooth {

struct Outcome {
  int status = -1;  // exit status, or minus the signal that ended it
  std::string out, err;
};

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("fedsmooth_cli_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Starts `fedsmooth arguments` through the shell, its output in files.
  pid_t start(const std::string& arguments) {
    const std::string command = std::string("exec ") + FEDSMOOTH_PROGRAM + " " + arguments + " >" +
                                path("out") + " 2>" + path("err");
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }

  Outcome finish(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(path("out")),
            read_file(path("err"))};
  }

  Outcome run(const std::string& arguments) { return finish(start(arguments)); }

  /// Waits until `table` has at least `rows` rows, for at most a minute.
  void wait_for_rows(const std::string& table, int64_t rows) {
    for (int i = 0; i < 6000; ++i) {
      if (std::filesystem::exists(table)) {
        const std::string text = read_file(table);
        if (std::count(text.begin(), text.end(), '\n') > rows) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << table << " never got " << rows << " rows";
  }

  std::filesystem::path folder_;
};

/// The user's mistake: status 2, one line on stderr that contains `what`.
inline void expect_refused(const Outcome& outcome, const std::string& what) {
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
}

}  // namespace fedsmooth
