// Networks that are chosen by name. Their tensors have the names of the common PyTorch codes: the
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

/// Returns the names of the networks whose tensors a state dict is compared with. The families of
/// residual_networks.h have more members than these.
const std::vector<std::string>& architecture_names();

/// Returns the network for images of shape `input` in `classes` classes: a normalisation, then the
/// layers. Throws an Error for an unknown name or layers that do not fit the images.
Network build_network(const ModelOptions& options, const Shape& input, int64_t classes);

/// Fills in mean and sd where `options` has none: those of CIFAR-10 or CIFAR-100, or 0.5 and 0.25
/// for any other data set.
void set_default_normalization(ModelOptions& options, const std::string& data_name,
                               int64_t channels);

}  // namespace fedsmooth
