// Between our arrays and LibTorch's tensors. Seen by engine/torch alone.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// Images to logits, wherever they lie.
using TensorFunction = std::function<at::Tensor(const at::Tensor&)>;

/// Shares the values, which must outlive it. Floats only.
inline at::Tensor as_tensor(const Array& array) {
  return at::from_blob(const_cast<float*>(array.floats()), array.sizes(), at::kFloat);
}

/// A copy.
inline Array to_array(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kCPU, at::kFloat).contiguous();
  Array array({dense.sizes().begin(), dense.sizes().end()});
  std::copy_n(dense.data_ptr<float>(), array.count(), array.floats());
  return array;
}

}  // namespace fedsmooth
