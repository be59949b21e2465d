#include "fedsmooth/data/idx.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/data/labelled.h"
#include "fedsmooth/data/public_sets.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

constexpr uint8_t kUnsignedByte = 0x08;
constexpr int64_t kMostIdxAxes = 4;

bool ends_with_any(const std::string& name, const std::vector<std::string>& endings) {
  return std::ranges::any_of(endings, [&](const auto& ending) { return name.ends_with(ending); });
}

/// The only file there whose name has one of the endings; empty if there is none.
fs::path find_ending(const fs::path& folder, const std::vector<std::string>& endings) {
  std::error_code status;
  fs::path found;
  for (fs::directory_iterator it(folder, status), end; !status && it != end; it.increment(status)) {
    if (!ends_with_any(it->path().filename().string(), endings)) continue;
    if (!found.empty()) {
      throw Error("{} and {}: two files for the same thing; give each data set a folder of its own",
                  std::min(found, it->path()).string(),
                  std::max(found, it->path()).filename().string());
    }
    found = it->path();
  }
  return found;
}

// MNIST calls its test half t10k, EMNIST test. Some unpackers write a dot for the second dash.
std::vector<std::string> endings_of(Split split, const std::string& what) {
  std::vector<std::string> endings;
  const std::vector<std::string> halves = split == Split::kTrain
                                              ? std::vector<std::string>{"train"}
                                              : std::vector<std::string>{"t10k", "test"};
  for (const std::string& half : halves) {
    for (const char* joint : {"-", "."}) {
      endings.push_back(half + (what == "images" ? "-images" : "-labels") + joint +
                        (what == "images" ? "idx3-ubyte" : "idx1-ubyte"));
    }
  }
  return endings;
}

fs::path find_file(const fs::path& root, Split split, const std::string& what) {
  const std::vector<std::string> endings = endings_of(split, what);
  for (const fs::path& folder : {root, root / "mnist", root / "MNIST" / "raw"}) {
    const fs::path found = find_ending(folder, endings);
    if (!found.empty()) return found;
  }
  throw Error(
      "{}: no such file, nor in the folders mnist and MNIST/raw beside it, unpacked; `{}` "
      "gets MNIST's",
      (root / endings.front()).string(), data_command("mnist", root));
}

Array read_idx(const fs::path& path, int64_t axes) {
  const Array values = parse_idx(read_file(path), path.string());
  if (values.axes() != axes) {
    throw Error("{}: has {} axes, expected {}; is it the file that its name says?", path.string(),
                values.axes(), axes);
  }
  return values;
}

std::vector<int64_t> read_labels(const fs::path& path) {
  const Array labels = read_idx(path, 1);
  return {labels.bytes(), labels.bytes() + labels.count()};
}

}  // namespace

Array parse_idx(std::string_view bytes, const std::string& name) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (bytes.starts_with("\x1f\x8b")) throw Error("{}: is packed; unpack it with gunzip", name);
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0) {
    throw Error("{}: not an IDX file, by its first bytes; download it again", name);
  }
  if (byte(2) != kUnsignedByte) {
    throw Error("{}: values of type {:#04x}, only unsigned bytes (0x08) are read", name, byte(2));
  }
  const int64_t axes = byte(3);
  if (axes < 1 || axes > kMostIdxAxes || std::ssize(bytes) < 4 + 4 * axes) {
    throw Error("{}: an IDX file of {} axes in {} bytes; download it again", name, axes,
                bytes.size());
  }
  const std::string_view values = bytes.substr(4 + 4 * axes);
  Sizes sizes;
  int64_t count = 1;
  for (int64_t axis = 0; axis < axes; ++axis) {
    int64_t size = 0;
    for (int64_t i = 0; i < 4; ++i) size = size << 8 | byte(4 + 4 * axis + i);
    sizes.push_back(size);
    // A product beyond the file's size is wrong, whatever it is; this keeps it within 64 bits.
    count = size == 0 || count > std::ssize(values) / size ? 0 : count * size;
  }
  if (count == 0 || count != std::ssize(values)) {
    throw Error("{}: {} bytes of values, its sizes say {}; download it again", name, values.size(),
                fmt::join(sizes, " x "));
  }
  Array array(sizes, Array::Type::kByte);
  std::ranges::copy(values, reinterpret_cast<char*>(array.bytes()));
  return array;
}

Dataset read_idx_folder(const fs::path& root, Split split) {
  const fs::path images = find_file(root, split, "images");
  const fs::path labels = find_file(root, split, "labels");
  const fs::path train_labels = find_file(root, Split::kTrain, "labels");
  const Array pixels = read_idx(images, 3);  // [N, H, W]
  return label_images(pixels.with_sizes({pixels.size(0), 1, pixels.size(1), pixels.size(2)}),
                      read_labels(labels), read_labels(train_labels),
                      {images.string(), labels.string(), train_labels.string()});
}

}  // namespace fedsmooth
