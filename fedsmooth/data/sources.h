// Where data sets come from. load_dataset() picks one by name; tests call them directly.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fedsmooth/data/dataset.h"

namespace fedsmooth {

/// The standard binary files data_batch_1..5.bin and test_batch.bin, in `root` or in its folder
/// cifar-10-batches-bin.
Dataset read_cifar10(const std::filesystem::path& root, Split split);

/// `root`/train/CLASS/*.png|jpg|jpeg and `root`/test/CLASS/...; classes and files in the order of
/// their names. Images of different sizes are refused.
Dataset read_image_folder(const std::filesystem::path& root, Split split);

/// The built-in data: 32x32 RGB images of ten kinds of figure with random pose, size, colour and
/// background, a pure function of (split, count, seed).
Dataset make_shapes(Split split, int64_t count, uint64_t seed);

/// One PNG or JPEG file as uint8 [3, H, W]. Grey images are repeated; damaged or truncated files,
/// sides above 4096 pixels and pixels that are not opaque are refused.
Array read_image(const std::filesystem::path& path);

/// The same for a file already in memory; `name` is what an Error calls it.
Array decode_image(std::string_view bytes, const std::string& name);

}  // namespace fedsmooth
