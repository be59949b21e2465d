// The table of data sources. A row is a name for `data.name` and a function that reads one half of
// the data; experiments, commands and Python know a source by its row alone. A program that links
// the library adds a row of its own:
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
  /// Reads from `root`, which is data.root. Images are bytes [N, C, H, W] with N > 0; both halves
  /// have the same shape and the same class names. An Error names the file that is wrong.
  std::function<Dataset(const std::filesystem::path& root, Split split)> read;
};

/// Rows are added before the first experiment is read, by one thread.
Registry<DataSource>& data_sources();

}  // namespace fedsmooth
