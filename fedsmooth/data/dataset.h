// Labelled images, as bytes (a caller may also make them of floats in [0, 1]). Pixel values enter a
// network as byte / 255, in [0, 1]; sigma, epsilon and every radius are l2 distances in that space.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

struct DataOptions {
  std::string name = "cifar10";  // a name of data_sources()
  std::string root = "data";     // where its files are; `shapes` needs none
  bool augment = true;           // training: random crop with padding 4 and horizontal flip
  int64_t held_out = 0;          // number of training images that replace the test images
};

enum class Split { kTrain, kTest };

struct Dataset {
  Array images;                 // bytes [N, C, H, W], or floats in [0, 1]
  std::vector<int64_t> labels;  // [N], each in [0, class_names.size())
  std::vector<std::string> class_names;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
  /// Returns image `index` as floats [C, H, W] in [0, 1].
  Array image(int64_t index) const;
  int64_t label(int64_t index) const { return labels.at(index); }
  /// Returns the shape [C, H, W] of an image.
  Sizes shape() const { return images[0].sizes(); }
};

/// Reads and checks one split of a data set. Throws an Error that names the file that is missing or
/// wrong. Held-out images are taken at equal distances from the training images, because a folder
/// is read class by class.
Dataset load_dataset(const DataOptions& options, Split split);

/// Returns the SHA-256 of pixels and labels, which provenance records.
std::string digest(const Dataset& dataset);

}  // namespace fedsmooth
