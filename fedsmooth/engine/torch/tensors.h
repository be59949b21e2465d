// Converts between our arrays and LibTorch's tensors. Only engine/torch includes it.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// Maps images to logits, on the CPU or the GPU.
using TensorFunction = std::function<at::Tensor(const at::Tensor&)>;

/// Returns a tensor that shares the array's floats. The array must outlive it.
inline at::Tensor as_tensor(const Array& array) {
  return at::from_blob(const_cast<float*>(array.floats()), array.sizes(), at::kFloat);
}

/// Returns a copy of the tensor as floats on the host.
inline Array to_array(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kCPU, at::kFloat).contiguous();
  Array array({dense.sizes().begin(), dense.sizes().end()});
  std::copy_n(dense.data_ptr<float>(), array.count(), array.floats());
  return array;
}

}  // namespace fedsmooth
