// Runs the program as a user does.
#pragma once

#include <gtest/gtest.h>
#include <png.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "fedsmooth/base/file.h"
#include "fedsmooth/data/sources.h"
#include "tests/folder.h"

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
    remove_folder(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { remove_folder(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Starts `fedsmooth arguments`.
  pid_t start(const std::string& arguments) {
    return start_command(std::string(FEDSMOOTH_PROGRAM) + " " + arguments);
  }

  /// Starts a command through the shell, its output in files. Unless it asks for a GPU it finds
  /// none, so that it does the same on every machine.
  pid_t start_command(const std::string& command) {
    const std::string line = "exec " + command + " >" + path("out") + " 2>" + path("err");
    const pid_t child = ::fork();
    if (child == 0) {
      if (command.find("--device cuda") == std::string::npos) {
        ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
      }
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
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

  /// Bytes [3, H, W] as a PNG file.
  void write_png(const Array& pixels, const std::string& name) {
    const int64_t area = pixels.size(1) * pixels.size(2);
    std::vector<uint8_t> rows(pixels.count());
    for (int64_t i = 0; i < pixels.count(); ++i) {
      rows[i % area * 3 + i / area] = pixels.bytes()[i];
    }
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.height = static_cast<png_uint_32>(pixels.size(1));
    image.width = static_cast<png_uint_32>(pixels.size(2));
    image.format = PNG_FORMAT_RGB;
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    ASSERT_NE(png_image_write_to_file(&image, path(name).c_str(), 0, rows.data(), 0, nullptr), 0);
  }

  /// Ten classes of six training images and one test image, read in no time. Returns the options
  /// that choose them.
  std::string write_tiny_data() {
    const Dataset shapes = make_shapes(Split::kTrain, 70, 0);
    for (int64_t i = 0; i < 70; ++i) {
      write_png(shapes.images[i], std::string(i < 60 ? "data/train/" : "data/test/") +
                                      shapes.class_names[shapes.label(i)] + "/" +
                                      std::to_string(i) + ".png");
    }
    return " --data.name=image-folder --data.root=" + path("data") + " ";
  }

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
