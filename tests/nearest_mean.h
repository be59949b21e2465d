// A model that takes no training: examples/nearest_mean's.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace fedsmooth {

/// Writes it to `path`. The example is run once per process: it draws ten thousand images.
inline void write_nearest_mean(const std::filesystem::path& path) {
  struct Made {
    std::filesystem::path file = std::filesystem::temp_directory_path() /
                                 ("nearest_mean_" + std::to_string(::getpid()) + ".safetensors");
    Made() { EXPECT_EQ(std::system((FEDSMOOTH_NEAREST_MEAN " " + file.string()).c_str()), 0); }
    ~Made() { std::filesystem::remove(file); }
  };
  static const Made made;
  std::filesystem::copy_file(made.file, path, std::filesystem::copy_options::overwrite_existing);
}

}  // namespace fedsmooth
