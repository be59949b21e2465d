// Images and labels that lie in files of their own, joined and checked. Such files do not name the
// classes: they are the numbers from 0 to the largest training label, in both halves.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/data/dataset.h"

namespace fedsmooth {

/// What an Error calls the three.
struct LabelledNames {
  std::string images, labels, train_labels;
};

/// `images` are bytes [N, C, H, W]. Refuses another number of labels, labels that are negative or
/// above `kMostClasses`, test labels that training does not have, sides above 4096 pixels.
Dataset label_images(const Array& images, const std::vector<int64_t>& labels,
                     const std::vector<int64_t>& train_labels, const LabelledNames& names);

inline constexpr int64_t kMostClasses = 1 << 16;

}  // namespace fedsmooth
