// The same network on the CPU in double precision, as plainly as possible.
#pragma once

#include <vector>

#include "votes.h"

namespace resnet {

/// What is rounded to bf16 on the way: nothing, or the weights and maps where the GPU does.
enum class Rounding { kNone, kAsGpu };

/// Logits of a normalised image [3, 32, 32].
std::vector<double> classify(const FoldedResNet& net, const std::vector<double>& image,
                             Rounding rounding);

/// A network with He's initial weights, biases, and branches scaled down as batch norm would.
FoldedResNet random_network(int n, bool project, uint64_t seed);

}  // namespace resnet
