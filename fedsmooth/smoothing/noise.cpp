#include "fedsmooth/smoothing/noise.h"

#include <ATen/ATen.h>

namespace fedsmooth {

void check_copies(const Tensor& x, int64_t first, int64_t count, const Tensor& noisy) {
  TORCH_CHECK(x.is_contiguous() && noisy.is_contiguous() && x.scalar_type() == at::kFloat &&
                  noisy.scalar_type() == at::kFloat && noisy.size(0) >= count &&
                  noisy.numel() == noisy.size(0) * x.numel(),
              "noise: x ", x.sizes(), ", noisy ", noisy.sizes(), ", count ", count);
  TORCH_CHECK(first >= 0 && first + count <= int64_t{1} << 32, "noise: sample ", first + count,
              " is beyond the 32-bit counter");
}

void add_noise(const Tensor& x, double sigma, Stream stream, int64_t first, int64_t count,
               Tensor& noisy) {
  check_copies(x, first, count, noisy);
  const int64_t size = x.numel();
  const float* clean = x.data_ptr<float>();
  const auto scale = static_cast<float>(sigma);
  float* out = noisy.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i, out += size) {
    fill_normal(stream, static_cast<uint32_t>(first + i), out, size);
    for (int64_t j = 0; j < size; ++j) out[j] = clean[j] + scale * out[j];
  }
}

}  // namespace fedsmooth
