// The named networks. Their tensors are called as in the codes that users come from: the common
// CIFAR AlexNet (features.0.weight ... classifier.bias), VGG-16 of kuangliu/pytorch-cifar, and the
// residual networks of residual_networks.h.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

struct ModelOptions {
  std::string name = "alexnet";  // alexnet | alexnet-fc | small | vgg16-bn | layers | residual
  std::vector<double> mean;      // of the normalisation layer, per channel; empty: the data set's
  std::vector<double> sd;
  std::vector<Layer> layers;  // [[model.layers]], for name = "layers"
};

/// The names that a state dict is compared with. The families of residual_networks.h have more.
const std::vector<std::string>& architecture_names();

/// The network for images of shape `input` in `classes` classes: normalisation, then the layers.
Network build_network(const ModelOptions& options, const Shape& input, int64_t classes);

/// The mean and sd that go with a data set: CIFAR-10's own, 0.5 and 0.25 for all others.
void set_default_normalization(ModelOptions& options, const std::string& data_name,
                               int64_t channels);

}  // namespace fedsmooth
