// A model on the GPU whose gradients can be asked for: what `attack` climbs by. In bfloat16, as the
// network answers there.
#pragma once

#include <functional>

#include "fedsmooth/base/classifier.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// For a model whose batch norms are folded, with a network that the GPU engine trains. Each call
/// of the result makes a classifier for one thread, on the GPU in use there; all share the weights.
std::function<DifferentiableClassifier()> device_gradients(
    const Model& folded, Precision precision = Precision::kBfloat16);

}  // namespace fedsmooth
