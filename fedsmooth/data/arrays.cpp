#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/data/labelled.h"
#include "fedsmooth/data/npz.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

bool is_channels(int64_t size) { return size == 1 || size == 3; }

/// [N, H, W, C] as [N, C, H, W].
Array channels_first(const Array& rows) {
  const int64_t area = rows.size(1) * rows.size(2), channels = rows.size(3);
  Array images({rows.size(0), channels, rows.size(1), rows.size(2)}, Array::Type::kByte);
  uint8_t* to = images.bytes();
  for (int64_t image = 0; image < rows.size(0); ++image) {
    const uint8_t* from = rows.bytes() + image * area * channels;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < area; ++i) *to++ = from[i * channels + c];
    }
  }
  return images;
}

Array to_images(const NpyArray& array, const std::string& name) {
  const auto axes = array.sizes.size();
  if (axes != 3 && axes != 4) {
    throw Error("{}: shape ({}), expected [N, H, W], [N, C, H, W] or [N, H, W, C]", name,
                fmt::join(array.sizes, ", "));
  }
  if (array.type != "|u1") {
    throw Error("{}: values of type {:?}, expected bytes; save (255 * x).round().astype('uint8')",
                name, array.type);
  }
  Sizes sizes = array.sizes;
  if (axes == 3) sizes.insert(sizes.begin() + 1, 1);
  Array images(sizes, Array::Type::kByte);
  std::ranges::copy(array.bytes, reinterpret_cast<char*>(images.bytes()));
  return !is_channels(sizes[1]) && is_channels(sizes[3]) ? channels_first(images) : images;
}

std::vector<int64_t> to_labels(const NpyArray& array, const std::string& name) {
  const Sizes& sizes = array.sizes;
  if (sizes.size() != 1 && !(sizes.size() == 2 && sizes[1] == 1)) {
    throw Error("{}: shape ({}), expected [N]", name, fmt::join(sizes, ", "));
  }
  return to_integers(array, name);
}

}  // namespace

Dataset parse_arrays(std::string_view file, Split split, const std::string& name) {
  const std::string half = split == Split::kTrain ? "train" : "test";
  const auto read = [&](const std::string& member) { return read_npz_member(file, member, name); };
  const LabelledNames names = {name + ": x_" + half, name + ": y_" + half, name + ": y_train"};
  return label_images(to_images(read("x_" + half), names.images),
                      to_labels(read("y_" + half), names.labels),
                      to_labels(read("y_train"), names.train_labels), names);
}

Dataset read_arrays(const std::filesystem::path& root, Split split) {
  if (std::error_code status; std::filesystem::is_directory(root, status)) {
    throw Error("{}: a folder; data.root must be the .npz file itself", root.string());
  }
  return parse_arrays(read_file(root), split, root.string());
}

}  // namespace fedsmooth
