// A network's pass by LibTorch's operators, through which its autograd can go: an oracle from
// elsewhere for the reference, and what runs layers alone on a GPU.
#pragma once

#include <optional>
#include <vector>

#include "fedsmooth/base/random.h"
#include "fedsmooth/engine/torch/tensors.h"
#include "fedsmooth/model/parts.h"

namespace fedsmooth {

using Tensors = std::vector<at::Tensor>;

/// What the passes with LibTorch compute; they throw a c10::Error if a stage has another part.
inline constexpr Parts kTorchParts = {
    Part::kNormalize, Part::kConv,    Part::kLinear,  Part::kSubsample, Part::kBatchNorm,
    Part::kGroupNorm, Part::kSum,     Part::kRelu,    Part::kLeakyRelu, Part::kSilu,
    Part::kGelu,      Part::kMaxPool, Part::kAvgPool, Part::kDropout};

/// See Passes::forward(): with a stream the pass is one of training.
at::Tensor torch_forward(const Network& network, const Tensors& weights, const at::Tensor& images,
                         const std::optional<Stream>& training = std::nullopt);

}  // namespace fedsmooth
