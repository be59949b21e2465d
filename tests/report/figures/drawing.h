// Tests that draw: each in a folder of its own, none without gnuplot.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "fedsmooth/base/file.h"
#include "fedsmooth/report/figures/canvas.h"
#include "tests/folder.h"

namespace fedsmooth {

/// The figure's SVG, as it would be in a file.
inline std::string figure_svg(const Figure& figure) {
  const std::filesystem::path file =
      fmt::format("{}fedsmooth_figure_{}.svg", testing::TempDir(), ::getpid());
  write_figure(figure, file);
  const std::string svg = read_file(file);
  std::filesystem::remove(file);
  return svg;
}

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
