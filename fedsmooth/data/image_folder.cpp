#include <algorithm>
#include <cctype>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

/// What is in a folder, hidden entries left out, in the order of the names: directory order differs
/// between machines, and an image's index names its noise.
std::vector<fs::path> list_folder(const fs::path& folder) {
  std::error_code status;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, status), end; !status && it != end; it.increment(status)) {
    if (!it->path().filename().string().starts_with('.')) entries.push_back(it->path());
  }
  if (status) {
    throw Error("{}: {}; images are expected in train/CLASS and test/CLASS", folder.string(),
                status.message());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<std::string> list_classes(const fs::path& folder) {
  std::error_code status;
  std::vector<std::string> names;
  for (const fs::path& entry : list_folder(folder)) {
    if (fs::is_directory(entry, status)) names.push_back(entry.filename().string());
  }
  if (names.empty()) {
    throw Error("{}: no class folders; put the images of each class in a folder of its name",
                folder.string());
  }
  return names;
}

/// Labels are positions in the list of classes, so both halves must have the same list.
void check_same_classes(const fs::path& root, const std::vector<std::string>& train,
                        const std::vector<std::string>& test) {
  const auto refuse_missing = [&](const auto& wanted, const auto& present, const char* folder) {
    for (const std::string& name : wanted) {
      if (std::ranges::binary_search(present, name)) continue;
      throw Error("{}: no such folder; train and test must have the same classes",
                  (root / folder / name).string());
    }
  };
  refuse_missing(train, test, "test");
  refuse_missing(test, train, "train");
}

bool has_image_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

std::vector<fs::path> list_images(const fs::path& folder) {
  std::vector<fs::path> images = list_folder(folder);
  std::erase_if(images, [](const fs::path& path) { return !has_image_ending(path); });
  if (images.empty()) {
    throw Error("{}: no images; put .png, .jpg or .jpeg files there", folder.string());
  }
  return images;
}

Array read_images(const std::vector<fs::path>& paths) {
  Array images;  // [N, 3, H, W], once the size is known from the first image
  for (int64_t i = 0; i < std::ssize(paths); ++i) {
    const Array image = read_image(paths[i]);
    const int64_t height = image.size(1), width = image.size(2);
    if (i == 0) images = Array({std::ssize(paths), 3, height, width}, Array::Type::kByte);
    if (height != images.size(2) || width != images.size(3)) {
      throw Error("{}: {}x{} pixels, but {} has {}x{}; scale all images to one size",
                  paths[i].string(), width, height, paths[0].string(), images.size(3),
                  images.size(2));
    }
    std::copy_n(image.bytes(), image.count(), images[i].bytes());
  }
  return images;
}

}  // namespace

Dataset read_image_folder(const fs::path& root, Split split) {
  const std::vector<std::string> classes = list_classes(root / "train");
  // A node of a federation may hold training images alone.
  if (split == Split::kTest || fs::exists(root / "test")) {
    check_same_classes(root, classes, list_classes(root / "test"));
  }

  std::vector<fs::path> paths;
  std::vector<int64_t> labels;
  for (int64_t label = 0; label < std::ssize(classes); ++label) {
    const fs::path folder = root / (split == Split::kTrain ? "train" : "test") / classes[label];
    const std::vector<fs::path> images = list_images(folder);
    paths.insert(paths.end(), images.begin(), images.end());
    labels.insert(labels.end(), images.size(), label);
  }
  std::vector<std::string> names;  // valid UTF-8, which file names need not be
  for (const std::string& name : classes) names.push_back(one_line(name));
  return {read_images(paths), labels, names};
}

}  // namespace fedsmooth
