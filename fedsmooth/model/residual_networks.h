// The named residual networks for CIFAR, with the tensor names of common PyTorch codes:
//
//   resnetN    He et al. 2016, 16 to 64 channels, N = 6 n + 2 layers; locuslab/smoothing
//   resnet18   64 to 512 channels, two basic blocks in each of four stages; kuangliu/pytorch-cifar
//   wrn-D-K    Wide ResNet, Zagoruyko and Komodakis 2016: 16 K to 64 K channels, pre-activation
//              blocks, D = 6 n + 4 layers; xternalz/WideResNet-pytorch
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Returns the layers of a residual network without the normalisation; nothing if `name` is none of
/// resnetN with N = 6 n + 2 from 8 to 1202 (shortcuts that change the shape project), resnetN-a
/// (they leave pixels out and fill up with channels of zeros), resnetN-gn (group norms of eight
/// groups in place of batch norms), resnetN-ws and resnetN-gn-ws (every convolution standardises
/// its filters), resnet18, or wrn-D-K with D = 6 n + 4 from 10 to 1204 and K from 1 to 100.
std::optional<std::vector<Layer>> residual_layers(const std::string& name, int64_t classes);

bool is_residual_network(const std::string& name);

/// Returns why `name` is refused although it has the form of such a name, such as wrn-17-4. Empty
/// if it names a network or has another form.
std::string depth_refusal(const std::string& name);

}  // namespace fedsmooth
