#include "fedsmooth/federated/local_step.h"

#include <algorithm>

#include "fedsmooth/data/augment.h"
#include "fedsmooth/federated/clients/calibrate.h"

namespace fedsmooth {

std::vector<float> label_offsets(const LocalTask& task, int64_t k,
                                 const std::vector<int64_t>& images) {
  std::vector<float> offsets = log_class_shares(task.data, images);
  if (flips_labels(task, k)) std::reverse(offsets.begin(), offsets.end());
  return offsets;
}

Batch load_batch(const LocalTask& task, const std::vector<int64_t>& images, Stream stream) {
  Batch b{to_unit_interval(task.data.images.pick(images)), {}, images};
  if (task.augment) b.x = augment(b.x, stream);
  const bool flips = flips_labels(task, stream.client);
  for (const int64_t i : images) {
    const int64_t y = task.data.label(i);
    b.y.push_back(flips ? task.data.classes() - 1 - y : y);
  }
  return b;
}

Array draw_noise(const Array& x, int64_t m, double sigma, Stream stream) {
  Array noise({x.size(0), m, x.size(1), x.size(2), x.size(3)});
  const int64_t size = x.count() / x.size(0);
  float* out = noise.floats();
  for (int64_t sample = 0; sample < x.size(0) * m; ++sample, out += size) {
    fill_normal(stream, static_cast<uint32_t>(sample), out, size);
    for (int64_t j = 0; j < size; ++j) out[j] *= static_cast<float>(sigma);
  }
  return noise;
}

}  // namespace fedsmooth
