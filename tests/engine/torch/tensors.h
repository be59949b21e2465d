// Weights as LibTorch takes them.
#pragma once

#include "fedsmooth/engine/torch/torch_forward.h"

namespace fedsmooth {

/// Shares the values, which must outlive it.
inline Tensors tensors_of(const Weights& weights) {
  Tensors tensors;
  for (const Array& w : weights) tensors.push_back(as_tensor(w));
  return tensors;
}

}  // namespace fedsmooth
