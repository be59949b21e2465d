// The one tensor type, and the cheapest header that declares it.
#pragma once

#include <ATen/core/Tensor.h>

namespace fedsmooth {

using at::Tensor;

}  // namespace fedsmooth
