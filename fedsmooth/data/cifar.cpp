#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/data/public_sets.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPixels = 3072;

struct BatchFile {
  std::string name;
  int64_t records;
};

// A file is records: bytes of labels, then the red, green and blue planes.
// https://www.cs.toronto.edu/~kriz/cifar.html
struct Format {
  std::string title, command;  // what people call it, and what `fedsmooth data` calls it
  std::string folder, python_folder;
  std::vector<BatchFile> train, test;
  int64_t label_bytes;  // the last one is the class
  std::vector<std::string> class_names;

  int64_t record_bytes() const { return label_bytes + kPixels; }
};

const Format& cifar10() {
  static const Format format = {
      "CIFAR-10",
      "cifar10",
      "cifar-10-batches-bin",
      "cifar-10-batches-py",
      {{"data_batch_1.bin", 10'000},
       {"data_batch_2.bin", 10'000},
       {"data_batch_3.bin", 10'000},
       {"data_batch_4.bin", 10'000},
       {"data_batch_5.bin", 10'000}},
      {{"test_batch.bin", 10'000}},
      1,
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
  return format;
}

const Format& cifar100() {
  static const Format format = {
      "CIFAR-100",
      "cifar100",
      "cifar-100-binary",
      "cifar-100-python",
      {{"train.bin", 50'000}},
      {{"test.bin", 10'000}},
      2,
      {"apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
       "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
       "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
       "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
       "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
       "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
       "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
       "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
       "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
       "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
       "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
       "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
       "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
       "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
       "table",       "tank",          "telephone", "television", "tiger",        "tractor",
       "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
       "willow_tree", "wolf",          "woman",     "worm"}};
  return format;
}

// The Python version has the same names without .bin, in a folder of its own. A pickle is a
// program, so that reading one from elsewhere would run it.
bool holds_pickles(const fs::path& root, const Format& format, const std::string& name) {
  std::error_code status;
  return fs::exists(root / fs::path(name).stem(), status) ||
         fs::exists(root / format.python_folder, status);
}

fs::path find_batch(const fs::path& root, const Format& format, const std::string& name) {
  std::error_code status;
  for (const fs::path& folder : {root, root / format.folder}) {
    if (fs::exists(folder / name, status)) return folder / name;
  }
  if (holds_pickles(root, format, name)) {
    throw Error(
        "{}: no such file, only the Python version of {}, whose pickles are not read; "
        "`{}` gets the binary version",
        (root / name).string(), format.title, data_command(format.command, root));
  }
  throw Error("{}: no such file, nor in the folder {} beside it; `{}` gets it",
              (root / name).string(), format.folder, data_command(format.command, root));
}

/// Decodes one file into its images and labels.
void read_batch(const fs::path& path, const Format& format, int64_t records, uint8_t* images,
                int64_t* labels) {
  const std::string bytes = read_file(path);
  if (std::ssize(bytes) != records * format.record_bytes()) {
    throw Error("{}: {} bytes, this file of {} has {}; download it again", path.string(),
                bytes.size(), format.title, records * format.record_bytes());
  }
  const auto* record = reinterpret_cast<const uint8_t*>(bytes.data());
  for (int64_t i = 0; i < records; ++i, record += format.record_bytes()) {
    const uint8_t label = record[format.label_bytes - 1];
    if (label >= format.class_names.size()) {
      throw Error("{}: record {} has label {}, the largest is {}; download it again", path.string(),
                  i, label, format.class_names.size() - 1);
    }
    labels[i] = label;
    std::copy_n(record + format.label_bytes, kPixels, images + i * kPixels);
  }
}

Dataset read_cifar(const fs::path& root, const Format& format, Split split) {
  const std::vector<BatchFile>& files = split == Split::kTrain ? format.train : format.test;
  int64_t count = 0;
  for (const BatchFile& file : files) count += file.records;
  Dataset data{Array({count, 3, 32, 32}, Array::Type::kByte), std::vector<int64_t>(count),
               format.class_names};
  uint8_t* images = data.images.bytes();
  int64_t* labels = data.labels.data();
  for (const auto& [name, records] : files) {
    read_batch(find_batch(root, format, name), format, records, images, labels);
    images += records * kPixels;
    labels += records;
  }
  return data;
}

}  // namespace

Dataset read_cifar10(const fs::path& root, Split split) {
  return read_cifar(root, cifar10(), split);
}

Dataset read_cifar100(const fs::path& root, Split split) {
  return read_cifar(root, cifar100(), split);
}

}  // namespace fedsmooth
