#include "fedsmooth/data/dataset.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {

Tensor Dataset::image(int64_t index) const { return images[index].to(at::kFloat).div(255); }

int64_t Dataset::label(int64_t index) const { return labels[index].item<int64_t>(); }

namespace {

Dataset read_dataset(const DataOptions& options, Split split) {
  if (options.name == "cifar10") return read_cifar10(options.root, split);
  if (options.name == "image-folder") return read_image_folder(options.root, split);
  if (options.name == "shapes") {
    return make_shapes(split, split == Split::kTrain ? 10'000 : 2'000, /*seed=*/0);
  }
  throw Error("data set \"{}\": unknown; the known ones are cifar10, image-folder and shapes",
              options.name);
}

// Whether each of `size` images is among the `held_out`.
Tensor choose_held_out(int64_t size, int64_t held_out) {
  const Tensor held = at::zeros({size}, at::kBool);
  auto* chosen = held.data_ptr<bool>();
  for (int64_t i = 0; i < held_out; ++i) chosen[i * size / held_out] = true;
  return held;
}

}  // namespace

Dataset load_dataset(const DataOptions& options, Split split) {
  if (options.held_out == 0) return read_dataset(options, split);
  const Dataset all = read_dataset(options, Split::kTrain);
  if (options.held_out >= all.size()) {
    throw Error("data.held_out={}: there are {} training images", options.held_out, all.size());
  }
  const Tensor held = choose_held_out(all.size(), options.held_out);
  const Tensor taken = (split == Split::kTest ? held : held.logical_not()).nonzero().squeeze(1);
  return {all.images.index_select(0, taken), all.labels.index_select(0, taken), all.class_names};
}

std::string digest(const Dataset& dataset) {
  const Tensor images = dataset.images.contiguous();
  const Tensor labels = dataset.labels.contiguous();
  // Without the shape, a 16x64 image and a 32x32 one could share a digest.
  const std::string shape = fmt::format("{}\n", fmt::join(images.sizes(), " "));
  Sha256 hash;
  hash.update(shape.data(), shape.size());
  hash.update(images.data_ptr(), images.nbytes());
  hash.update(labels.data_ptr(), labels.nbytes());
  return hash.hex();
}

}  // namespace fedsmooth
