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
};

std::vector<Reader> readers();

}  // namespace fedsmooth
