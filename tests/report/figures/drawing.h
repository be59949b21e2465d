// Tests that draw: each in a folder of its own, none without gnuplot.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/folder.h"

namespace fedsmooth {

class DrawingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot > /dev/null") != 0) GTEST_SKIP() << "gnuplot is missing";
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "fedsmooth_" + test->test_suite_name() + "_" + test->name();
    remove_folder(folder_);
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(testing::TempDir());
    if (!folder_.empty()) remove_folder(folder_);
  }

  std::filesystem::path folder_;
};

}  // namespace fedsmooth
