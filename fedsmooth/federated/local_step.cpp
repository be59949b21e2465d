#include "fedsmooth/federated/local_step.h"

#include "fedsmooth/data/augment.h"

namespace fedsmooth {

Batch load_batch(const LocalTask& task, const std::vector<int64_t>& images, Stream stream) {
  Batch b{to_unit_interval(task.data.images.pick(images)), {}, images};
  if (task.augment) b.x = augment(b.x, stream);
  for (const int64_t i : images) b.y.push_back(task.data.label(i));
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
