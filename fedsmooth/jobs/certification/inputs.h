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

/// Loads all images before the first answer, so that a refused command prints nothing. If a name is
/// an index, the test set of the run or model `model`, overridden, is read into `test`. A grey file
/// has one channel where the model's images have one. Throws an Error if images differ in size.
std::vector<Input> load_inputs(const std::vector<std::string>& names, const std::string& model,
                               const Overrides& overrides, std::optional<Dataset>& test);

/// The names of all classes; a model file may name none.
std::vector<std::string> name_classes(const ModelUnderTest& subject);

}  // namespace fedsmooth::jobs
