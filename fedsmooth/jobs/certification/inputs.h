// Loads the images that a command's arguments name: files, or indices of the test set.
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
  std::string label;   // name of the right class of an image of the test set; empty for a file
  uint32_t index = 0;  // item of its noise stream: the index, or a digest of a file's pixels
};

/// Loads all images, so that a command that is refused has printed nothing. If a name is an index,
/// the test set of `model`, a run or model file, is read into `test` with the overrides applied. A
/// file whose channels are equal gets one channel if the model's images have one. Throws an Error
/// if images differ in size.
std::vector<Input> load_inputs(const std::vector<std::string>& names, const std::string& model,
                               const Overrides& overrides, std::optional<Dataset>& test);

/// Returns a name for each class: "class 7" where the subject has none.
std::vector<std::string> name_classes(const ModelUnderTest& subject);

}  // namespace fedsmooth::jobs
