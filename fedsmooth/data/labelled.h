// Joins and checks images and labels from separate files. Such files do not name classes: in both
// splits the classes are the numbers from 0 to the largest training label.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/data/dataset.h"

namespace fedsmooth {

/// The names of the three inputs in error messages.
struct LabelledNames {
  std::string images, labels, train_labels;
};

/// Makes a data set of images, bytes [N, C, H, W], and labels. Throws an Error for another number
/// of labels, labels that are negative or above `kMostClasses`, test labels that training does not
/// have, and sides above 4096 pixels.
Dataset label_images(const Array& images, const std::vector<int64_t>& labels,
                     const std::vector<int64_t>& train_labels, const LabelledNames& names);

inline constexpr int64_t kMostClasses = 1 << 16;

}  // namespace fedsmooth
