// A network's forward pass by LibTorch's operators, which autograd can differentiate. It is an
// independent oracle for the reference engine, and runs single layers on a GPU.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/base/random.h"
#include "fedsmooth/engine/torch/tensors.h"
#include "fedsmooth/model/parts.h"

namespace fedsmooth {

using Tensors = std::vector<at::Tensor>;

/// The parts of a stage that passes with LibTorch compute. They throw a c10::Error if a stage has
/// another part.
inline constexpr Parts kTorchParts = {
    Part::kNormalize, Part::kConv,    Part::kLinear,  Part::kSubsample, Part::kBatchNorm,
    Part::kGroupNorm, Part::kSum,     Part::kRelu,    Part::kLeakyRelu, Part::kSilu,
    Part::kGelu,      Part::kMaxPool, Part::kAvgPool, Part::kDropout};

/// Returns the logits [rows, classes] of `images`. With a stream the pass is one of training: batch
/// norms use the batch's statistics and update the running ones in `weights`, and dropout draws
/// from the stream. Throws a c10::Error if the weights are not the network's.
at::Tensor torch_forward(const Network& network, const Tensors& weights, const at::Tensor& images,
                         const std::optional<Stream>& training = std::nullopt);

}  // namespace fedsmooth
