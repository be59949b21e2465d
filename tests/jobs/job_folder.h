// A folder for what jobs write, a small experiment, and a context that keeps what it is given.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/jobs/training.h"
#include "tests/folder.h"

namespace fedsmooth {

class JobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("fedsmooth_job_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    remove_folder(folder_);
    std::filesystem::create_directories(folder_);
    context_.device = "cpu";
    context_.threads = 1;
    context_.warn = [this](const std::string& line) { warnings_.push_back(line); };
  }
  void TearDown() override { remove_folder(folder_); }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  /// Three rounds of two clients, two steps of four images each.
  static Experiment small_experiment() {
    Experiment e;
    e.data.name = "shapes";
    e.model.name = "small";
    e.partition.clients = 4;
    e.partition.samples_per_client = 20;
    e.train.clients_per_round = 2;
    e.train.rounds = 3;
    e.train.local.steps = 2;
    e.train.local.batch = 4;
    e.attack.steps = 1;
    e.certify.n = 200;
    e.certify.every = 400;
    return e;
  }

  std::filesystem::path folder_;
  jobs::Context context_;
  std::vector<std::string> warnings_;
};

/// An experiment that tests change and train.
class TrainingJobTest : public JobTest {
 protected:
  std::string train(const std::string& name) {
    return jobs::train({experiment_, path(name), /*resume=*/true}, context_).model_sha256;
  }

  Experiment experiment_ = small_experiment();
};

/// The user's mistake, in one line that contains `what`.
template <typename Job>
void expect_error(const Job& job, const std::string& what) {
  try {
    job();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

}  // namespace fedsmooth
