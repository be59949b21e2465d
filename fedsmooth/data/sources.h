// The readers behind the rows of the table in data_source.cpp. load_dataset() chooses one by name;
// tests call them directly. All throw an Error that names the file that is missing or wrong.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fedsmooth/data/dataset.h"

namespace fedsmooth {

inline constexpr int64_t kLargestSide = 4096;  // pixels along a side of any image

/// Reads the standard binary files data_batch_1..5.bin and test_batch.bin, in `root` or in its
/// folder cifar-10-batches-bin.
Dataset read_cifar10(const std::filesystem::path& root, Split split);

/// Reads the standard binary files train.bin and test.bin, in `root` or in its folder
/// cifar-100-binary, with the hundred fine labels.
Dataset read_cifar100(const std::filesystem::path& root, Split split);

/// Reads the four IDX files of MNIST or a set in its form, in `root`, in its folder mnist or in
/// torchvision's MNIST/raw: ...train-images-idx3-ubyte, ...train-labels-idx1-ubyte, and t10k- or
/// test- for the test split. Classes are the numbers up to the largest training label.
Dataset read_idx_folder(const std::filesystem::path& root, Split split);

/// Reads an .npz file `root` with NumPy arrays x_train, y_train, x_test, y_test: images uint8 [N,
/// H, W], [N, C, H, W] or [N, H, W, C], integer labels [N] or [N, 1]. Classes as in
/// read_idx_folder().
Dataset read_arrays(const std::filesystem::path& root, Split split);

/// As read_arrays(), for a file in memory; errors begin with `name`.
Dataset parse_arrays(std::string_view file, Split split, const std::string& name);

/// Reads `root`/train/CLASS/*.png|jpg|jpeg or `root`/test/CLASS/..., classes and files in the order
/// of their names. Throws an Error for images of different sizes.
Dataset read_image_folder(const std::filesystem::path& root, Split split);

/// Makes the built-in data: 32x32 RGB images of ten kinds of figure with random pose, size, colour
/// and background, a pure function of (split, count, seed).
Dataset make_shapes(Split split, int64_t count, uint64_t seed);

/// Reads a PNG or JPEG file as uint8 [3, H, W]; a grey image gets three equal channels. Throws an
/// Error for damaged or truncated files, sides above 4096 pixels and pixels that are not opaque.
Array read_image(const std::filesystem::path& path);

/// As read_image(), for a file in memory; errors begin with `name`.
Array decode_image(std::string_view bytes, const std::string& name);

}  // namespace fedsmooth
