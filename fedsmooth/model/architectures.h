// The named networks. Their tensors are called as in the codes that users come from: the common
// CIFAR AlexNet (features.0.weight ... classifier.bias) and the CIFAR ResNets of
// locuslab/smoothing.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

struct ModelOptions {
  std::string name = "alexnet";  // alexnet | alexnet-fc | small | layers | a ResNet's, see below
  std::vector<double> mean;      // of the normalisation layer, per channel; empty: the data set's
  std::vector<double> sd;
  std::vector<Layer> layers;  // [[model.layers]], for name = "layers"
};

/// Those that a state dict may turn out to be.
const std::vector<std::string>& architecture_names();

/// Whether it is resnetN with N = 6 n + 2 from 8 to 1202 (shortcuts that change the shape project),
/// resnetN-a (they leave pixels out and fill up with channels of zeros) or resnetN-gn (group norms
/// of eight groups in place of batch norms).
bool is_resnet(const std::string& name);

/// The network for images of shape `input` in `classes` classes: normalisation, then the layers.
Network build_network(const ModelOptions& options, const Shape& input, int64_t classes);

/// The mean and sd that go with a data set: CIFAR-10's own, 0.5 and 0.25 for all others.
void set_default_normalization(ModelOptions& options, const std::string& data_name,
                               int64_t channels);

}  // namespace fedsmooth
