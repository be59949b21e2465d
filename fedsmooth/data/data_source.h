// The table of data sources. A row is a name for `data.name` and a function that reads one half of
// the data; experiments, commands and Python know a source by its row alone. A program that links
// the library adds a row of its own:
//
//   const bool known = add_data_source({"ramps", read_ramps});
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fedsmooth/data/dataset.h"

namespace fedsmooth {

struct DataSource {
  std::string name;  // data.name
  /// Reads from `root`, which is data.root. Images are bytes [N, C, H, W] with N > 0; both halves
  /// have the same shape and the same class names. An Error names the file that is wrong.
  std::function<Dataset(const std::filesystem::path& root, Split split)> read;
};

/// Adds a row; an Error if there is one of this name. To be called before the first experiment is
/// read, by one thread: from main(), or when a variable is initialised. Always true.
bool add_data_source(DataSource source);

/// The row of this name; an Error that lists the names if there is none.
const DataSource& find_data_source(const std::string& name);

std::vector<std::string> data_source_names();

}  // namespace fedsmooth
