// Models whose first layer takes noisy copies from the kernel that draws them.
#pragma once

#include "fedsmooth/engine/cuda/device_model.h"
#include "fedsmooth/engine/cuda/kernels/first_layer.h"

namespace fedsmooth {

/// The stages that make_first_layer() takes the place of: a convolution and its maxima.
inline constexpr size_t kNoisyStages = 2;

/// Whether make_first_layer() can do so: AlexNet's on images [3, 32, 32], in bfloat16, on Hopper.
/// For networks that BatchedPlan supports.
bool has_noisy_layer(const DeviceModel& model);

/// What make_first_layer() needs of such a model. Rows and `out` are left to the caller.
FirstLayerRows noisy_layer(const DeviceModel& model);

}  // namespace fedsmooth
