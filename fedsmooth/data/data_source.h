// The table of data sources. A row is a name for `data.name` and a function that reads one split of
// the data; experiments, commands and Python know a source only by its row. A program that links
// the library can add a row:
//
//   data_sources().add({"ramps", read_ramps});
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "fedsmooth/base/registry.h"
#include "fedsmooth/data/dataset.h"

namespace fedsmooth {

struct DataSource {
  std::string name;  // data.name
  /// Reads one split from `root`, the value of data.root. Images are bytes [N, C, H, W] with N > 0;
  /// both splits have equal shapes and class names. Throws an Error that names the file that is
  /// wrong.
  std::function<Dataset(const std::filesystem::path& root, Split split)> read;
};

/// Returns the table. Rows must be added before the first experiment is read, by one thread.
Registry<DataSource>& data_sources();

}  // namespace fedsmooth
