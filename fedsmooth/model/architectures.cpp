#include "fedsmooth/model/architectures.h"

#include <map>

#include "fedsmooth/base/error.h"
#include "fedsmooth/model/layer_makers.h"
#include "fedsmooth/model/residual_networks.h"

namespace fedsmooth {
namespace {

using namespace layer_makers;
using Kind = Layer::Kind;
using Layers = std::vector<Layer>;

Layer normalize(const ModelOptions& options) {
  Layer layer{Kind::kNormalize};
  layer.mean = options.mean;
  layer.sd = options.sd;
  return layer;
}

// The AlexNet for 32x32 images without hidden linear layers; 2,472,266 weights for ten classes.
Layers alexnet(int64_t classes) {
  return {conv("features.0", 64, 11, 4, 5),
          relu(),
          max_pool(2),
          conv("features.3", 192, 5, 1, 2),
          relu(),
          max_pool(2),
          conv("features.6", 384, 3, 1, 1),
          relu(),
          conv("features.8", 256, 3, 1, 1),
          relu(),
          conv("features.10", 256, 3, 1, 1),
          relu(),
          max_pool(2),
          linear("classifier", classes)};
}

// The AlexNet with two hidden linear layers; 23,272,266 weights for ten classes.
Layers alexnet_fc(int64_t classes) {
  return {conv("features.0", 64, 3, 2, 1),
          relu(),
          max_pool(2),
          conv("features.3", 192, 3, 1, 1),
          relu(),
          max_pool(2),
          conv("features.6", 384, 3, 1, 1),
          relu(),
          conv("features.8", 256, 3, 1, 1),
          relu(),
          conv("features.10", 256, 3, 1, 1),
          relu(),
          max_pool(2),
          dropout(0.5),
          linear("classifier.1", 4096),
          relu(),
          dropout(0.5),
          linear("classifier.4", 4096),
          relu(),
          linear("classifier.6", classes)};
}

// For the built-in data: 26,922 weights, a sixteenth of AlexNet's arithmetic.
Layers small(int64_t classes) {
  return {conv("features.0", 16, 5, 2, 2), relu(), max_pool(2),
          conv("features.3", 32, 3, 1, 1), relu(), max_pool(2),
          conv("features.6", 64, 3, 1, 1), relu(), max_pool(2),
          linear("classifier", classes)};
}

// The VGG-16 for 32x32 images of kuangliu/pytorch-cifar: batch norms, no hidden linear layers;
// 14,728,266 weights for ten classes.
Layers vgg16(int64_t classes) {
  constexpr std::pair<int64_t, int> kStages[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  Layers made;
  for (const auto& [channels, convolutions] : kStages) {
    for (int i = 0; i < convolutions; ++i) {
      const size_t number = made.size();  // in torch's Sequential
      made.push_back(conv(fmt::format("features.{}", number), channels, 3, 1, 1));
      made.push_back({Kind::kBatchNorm, fmt::format("features.{}", number + 1)});
      made.push_back(relu());
    }
    made.push_back(max_pool(2));
  }
  made.push_back(linear("classifier", classes));
  return made;
}

Layers named_layers(const std::string& name, int64_t classes) {
  if (name == "alexnet") return alexnet(classes);
  if (name == "alexnet-fc") return alexnet_fc(classes);
  if (name == "small") return small(classes);
  if (name == "vgg16-bn") return vgg16(classes);
  if (auto residual = residual_layers(name, classes)) return std::move(*residual);
  const std::string why = depth_refusal(name);
  if (!why.empty()) throw Error("model.name=\"{}\": {}", name, why);
  throw Error("model.name=\"{}\": no such network; there are {} and layers", name,
              fmt::join(architecture_names(), ", "));
}

Shape named_output_shape(const Network& network) {
  try {
    return output_shape(network);
  } catch (const Error& error) {
    throw Error("network {} does not take images [{}]: {}", network.name,
                fmt::join(network.input, ", "), error.what());
  }
}

}  // namespace

const std::vector<std::string>& architecture_names() {
  static const std::vector<std::string> names = {"alexnet",  "alexnet-fc", "resnet18",
                                                 "resnet20", "resnet110",  "small",
                                                 "vgg16-bn", "wrn-16-4",   "wrn-28-10"};
  return names;
}

Network build_network(const ModelOptions& options, const Shape& input, int64_t classes) {
  if (!options.layers.empty() && options.name != "layers") {
    throw Error("model.layers: model.name={:?} has layers of its own; give model.name=\"layers\"",
                options.name);
  }
  Network network{options.name, input, {normalize(options)}};
  const Layers layers =
      options.name == "layers" ? options.layers : named_layers(options.name, classes);
  network.layers.insert(network.layers.end(), layers.begin(), layers.end());
  const Shape output = named_output_shape(network);
  if (output != Shape{classes, 1, 1}) {
    throw Error("network {}: gives [{}] for images [{}], expected {} classes", options.name,
                fmt::join(output, ", "), fmt::join(input, ", "), classes);
  }
  return network;
}

void set_default_normalization(ModelOptions& options, const std::string& data_name,
                               int64_t channels) {
  // Means and standard deviations of the training images' channels.
  static const std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> kKnown = {
      {"cifar10", {{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}}},
      {"cifar100", {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}}}};
  const auto known = kKnown.find(data_name);
  const auto& [mean, sd] = known != kKnown.end() ? known->second
                                                 : std::pair(std::vector<double>(channels, 0.5),
                                                             std::vector<double>(channels, 0.25));
  if (options.mean.empty()) options.mean = mean;
  if (options.sd.empty()) options.sd = sd;
}

}  // namespace fedsmooth
