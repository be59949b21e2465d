// A model on the GPU with gradients with respect to images, for `attack`. By default it computes in
// bfloat16, like the passes that count votes there.
#pragma once

#include <functional>

#include "fedsmooth/base/classifier.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// Uploads a model, whose batch norms are folded and whose network network_refusal() does not
/// refuse, to the current GPU. Each call of the result makes a classifier for one thread, which
/// must use the same GPU; all share the weights.
std::function<DifferentiableClassifier()> device_gradients(
    const Model& folded, Precision precision = Precision::kBfloat16);

}  // namespace fedsmooth
