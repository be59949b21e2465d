// Everything in fedsmooth that reads files from elsewhere.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/mutate.h"

namespace fedsmooth {

struct Reader {
  const char* name;
  std::function<std::vector<std::string>()> seeds;  // valid files
  std::function<std::string(const std::string&, const std::vector<std::string>&, Random&)> mutate;
  std::function<void(const std::string&)> read;
  int64_t one_in = 1;  // does only one in so many of the runs, being slow
};

std::vector<Reader> readers();

/// Those of them that read data sets.
std::vector<Reader> data_readers();

}  // namespace fedsmooth
