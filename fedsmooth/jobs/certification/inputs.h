// The images that a command's arguments name: files, or indices of the test set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/data/dataset.h"
#include "fedsmooth/jobs/certification/model_under_test.h"

namespace fedsmooth::jobs {

struct Input {
  std::string name;
  Array image;         // [C, H, W] in [0, 1]
  uint32_t index = 0;  // names its noise
};

/// Loads all of them, before the first answer: a refused command prints nothing. The test set is
/// read into `test` if a name is an index. Throws an Error if images differ in size.
std::vector<Input> load_inputs(const std::vector<std::string>& names, const DataOptions& data,
                               std::optional<Dataset>& test);

/// The names of all classes; a model file may name none.
std::vector<std::string> name_classes(const ModelUnderTest& subject);

}  // namespace fedsmooth::jobs
