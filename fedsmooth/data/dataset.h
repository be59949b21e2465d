// Labelled images, as bytes. (Images in a caller's hand may be floats in [0, 1].) Pixel values
// enter a network as byte / 255, in [0, 1]; sigma, epsilon and every radius are l2 distances in
// that space.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

struct DataOptions {
  std::string name = "cifar10";  // a row of the table in data_source.cpp
  std::string root = "data";     // where its files are; `shapes` needs none
  bool augment = true;           // training: random crop with padding 4 and horizontal flip
  int64_t held_out = 0;          // so many training images take the test images' place
};

enum class Split { kTrain, kTest };

struct Dataset {
  Array images;                 // bytes [N, C, H, W]; floats if a caller made it of such
  std::vector<int64_t> labels;  // [N], each in [0, class_names.size())
  std::vector<std::string> class_names;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
  /// Image `index` as float [C, H, W] in [0, 1].
  Array image(int64_t index) const;
  int64_t label(int64_t index) const { return labels.at(index); }
  /// [C, H, W] of every image.
  Sizes shape() const { return images[0].sizes(); }
};

/// Reads and checks one half of a data set; an Error names the file that is missing or wrong.
/// Images that are held out lie at equal distances in the training half: a folder is read class by
/// class.
Dataset load_dataset(const DataOptions& options, Split split);

/// SHA-256 of the pixels and labels: what provenance records.
std::string digest(const Dataset& dataset);

}  // namespace fedsmooth
