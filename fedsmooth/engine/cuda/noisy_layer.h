// Networks whose first layer is one kernel with what makes its noisy copies.
#pragma once

#include "fedsmooth/engine/cuda/device_model.h"
#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"

namespace fedsmooth {

/// Whether make_first_layer() computes the first node of a network: AlexNet's on images [3, 32,
/// 32], in bfloat16, on Hopper.
bool has_noisy_layer(const PairNetwork& device, Precision precision);

/// What make_first_layer() needs of a model with one. Rows and `out` are left to the caller.
FirstLayerRows noisy_layer(const DeviceModel& model);

}  // namespace fedsmooth
