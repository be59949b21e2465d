#include "fedsmooth/data/augment.h"

#include <ATen/ATen.h>

namespace fedsmooth {
namespace {

constexpr int64_t kPadding = 4;

}  // namespace

Tensor augment(const Tensor& images, Stream stream) {
  const int64_t height = images.size(2), width = images.size(3);
  const Tensor padded =
      at::constant_pad_nd(images, {kPadding, kPadding, kPadding, kPadding});  // zeros
  Tensor out = at::empty_like(images);
  for (int64_t i = 0; i < images.size(0); ++i) {
    uint32_t words[3];
    fill_words(stream, static_cast<uint32_t>(i), words, 3);
    const Tensor crop = padded[i]
                            .narrow(1, words[0] % (2 * kPadding + 1), height)
                            .narrow(2, words[1] % (2 * kPadding + 1), width);
    out[i].copy_(words[2] % 2 == 0 ? crop : crop.flip(2));
  }
  return out;
}

}  // namespace fedsmooth
