#include "fedsmooth/smoothing/noise.h"

#include "fedsmooth/base/check.h"

namespace fedsmooth {

void check_copies(const Array& x, int64_t first, int64_t count, const Array& noisy) {
  check(noisy.axes() > 0 && noisy.size(0) >= count && noisy.count() == noisy.size(0) * x.count(),
        "noise: x [{}], noisy [{}], count {}", fmt::join(x.sizes(), ", "),
        fmt::join(noisy.sizes(), ", "), count);
  check(first >= 0 && first + count <= int64_t{1} << 32,
        "noise: sample {} is beyond the 32-bit counter", first + count);
}

void add_noise(const Array& x, double sigma, Stream stream, int64_t first, int64_t count,
               Array& noisy) {
  check_copies(x, first, count, noisy);
  const int64_t size = x.count();
  const float* clean = x.floats();
  const auto scale = static_cast<float>(sigma);
  float* out = noisy.floats();
  for (int64_t i = 0; i < count; ++i, out += size) {
    fill_noise(stream, static_cast<uint32_t>(first + i), out, size);
    for (int64_t j = 0; j < size; ++j) out[j] = clean[j] + scale * out[j];
  }
}

}  // namespace fedsmooth
