#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

// A file is 10,000 records: one byte of label, then the red, green and blue planes.
// https://www.cs.toronto.edu/~kriz/cifar.html
constexpr int64_t kRecords = 10'000;
constexpr int64_t kPixels = 3072;
constexpr int64_t kRecordBytes = 1 + kPixels;

const std::vector<std::string> kClassNames = {"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};

std::vector<std::string> batch_names(Split split) {
  if (split == Split::kTest) return {"test_batch.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
          "data_batch_5.bin"};
}

fs::path find_batch(const fs::path& root, const std::string& name) {
  std::error_code status;
  for (const fs::path& folder : {root, root / "cifar-10-batches-bin"}) {
    if (fs::exists(folder / name, status)) return folder / name;
  }
  throw Error(
      "{}: no such file, nor in the folder cifar-10-batches-bin beside it; unpack "
      "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz there",
      (root / name).string());
}

/// Decodes one file into kRecords images and labels.
void read_batch(const fs::path& path, uint8_t* images, int64_t* labels) {
  const std::string bytes = read_file(path);
  if (std::ssize(bytes) != kRecords * kRecordBytes) {
    throw Error("{}: {} bytes, a CIFAR-10 batch has {}; download it again", path.string(),
                bytes.size(), kRecords * kRecordBytes);
  }
  const auto* record = reinterpret_cast<const uint8_t*>(bytes.data());
  for (int64_t i = 0; i < kRecords; ++i, record += kRecordBytes) {
    if (record[0] >= kClassNames.size()) {
      throw Error("{}: record {} has label {}, the largest is 9; download it again", path.string(),
                  i, record[0]);
    }
    labels[i] = record[0];
    std::copy_n(record + 1, kPixels, images + i * kPixels);
  }
}

}  // namespace

Dataset read_cifar10(const fs::path& root, Split split) {
  const std::vector<std::string> names = batch_names(split);
  const int64_t count = std::ssize(names) * kRecords;
  Dataset data{Array({count, 3, 32, 32}, Array::Type::kByte), std::vector<int64_t>(count),
               kClassNames};
  uint8_t* images = data.images.bytes();
  int64_t* labels = data.labels.data();
  for (const std::string& name : names) {
    read_batch(find_batch(root, name), images, labels);
    images += kRecords * kPixels;
    labels += kRecords;
  }
  return data;
}

}  // namespace fedsmooth
