// Networks whose first layer runs in one kernel together with making its noisy copies.
#pragma once

#include "fedsmooth/engine/cuda/device_model.h"
#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"

namespace fedsmooth {

/// Returns whether make_first_layer() computes the first node of a network: it must be AlexNet's on
/// images [3, 32, 32], in bfloat16, on Hopper.
bool has_noisy_layer(const PairNetwork& device, Precision precision);

/// Returns the arguments of make_first_layer() for a model with has_noisy_layer(). The caller sets
/// `rows` and `out`. They point into the model, which must outlive them.
FirstLayerRows noisy_layer(const DeviceModel& model);

}  // namespace fedsmooth
