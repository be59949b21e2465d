#include "fedsmooth/data/dataset.h"

#include <fmt/ranges.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/data/data_source.h"

namespace fedsmooth {

Array Dataset::image(int64_t index) const {
  const Array one = images[index];
  return one.type() == Array::Type::kByte ? to_unit_interval(one) : one;
}

namespace {

// Which of `size` images are held out, or the others.
std::vector<int64_t> choose_images(int64_t size, int64_t held_out, bool held) {
  std::vector<bool> is_held(size, false);
  for (int64_t i = 0; i < held_out; ++i) is_held[i * size / held_out] = true;
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < size; ++i) {
    if (is_held[i] == held) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace

Dataset load_dataset(const DataOptions& options, Split split) {
  const DataSource& source = data_sources().find(options.name);
  if (options.held_out == 0) return source.read(options.root, split);
  const Dataset all = source.read(options.root, Split::kTrain);
  if (options.held_out >= all.size()) {
    throw Error("data.held_out={}: there are {} training images", options.held_out, all.size());
  }
  const std::vector<int64_t> chosen =
      choose_images(all.size(), options.held_out, /*held=*/split == Split::kTest);
  Dataset part{all.images.pick(chosen), {}, all.class_names};
  for (const int64_t i : chosen) part.labels.push_back(all.labels[i]);
  return part;
}

std::string digest(const Dataset& dataset) {
  const Array& images = dataset.images;
  // Without the shape, a 16x64 image and a 32x32 one could share a digest.
  const std::string shape = fmt::format("{}\n", fmt::join(images.sizes(), " "));
  Sha256 hash;
  hash.update(shape.data(), shape.size());
  hash.update(images.data(), images.byte_count());
  hash.update(dataset.labels.data(), dataset.labels.size() * sizeof(int64_t));
  return hash.hex();
}

}  // namespace fedsmooth
