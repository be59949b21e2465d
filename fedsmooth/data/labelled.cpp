#include "fedsmooth/data/labelled.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

int64_t count_classes(const std::vector<int64_t>& labels, const std::string& name) {
  if (labels.empty()) throw Error("{}: no labels", name);
  const auto [smallest, largest] = std::ranges::minmax(labels);
  if (smallest < 0 || largest >= kMostClasses) {
    throw Error("{}: labels from {} to {}, expected 0 to at most {}", name, smallest, largest,
                kMostClasses - 1);
  }
  return largest + 1;
}

}  // namespace

Dataset label_images(const Array& images, const std::vector<int64_t>& labels,
                     const std::vector<int64_t>& train_labels, const LabelledNames& names) {
  if (images.size(0) != std::ssize(labels)) {
    throw Error("{}: {} labels, but {} has {} images; they must belong together", names.labels,
                labels.size(), names.images, images.size(0));
  }
  if (images.size(2) > kLargestSide || images.size(3) > kLargestSide) {
    throw Error("{}: {}x{} pixels, the largest side allowed is {}; scale them down", names.images,
                images.size(3), images.size(2), kLargestSide);
  }
  const int64_t classes = count_classes(train_labels, names.train_labels);
  if (const int64_t found = count_classes(labels, names.labels); found > classes) {
    throw Error("{}: has label {}, but the largest in {} is {}", names.labels, found - 1,
                names.train_labels, classes - 1);
  }
  Dataset data{images, labels, {}};
  for (int64_t label = 0; label < classes; ++label)
    data.class_names.push_back(std::to_string(label));
  return data;
}

}  // namespace fedsmooth
