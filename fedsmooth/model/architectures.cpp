#include "fedsmooth/model/architectures.h"

#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;
using Layers = std::vector<Layer>;

Layer conv(std::string name, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding,
           bool bias = true) {
  Layer layer{Kind::kConv, std::move(name), outputs, kernel, stride, padding};
  layer.bias = bias;
  return layer;
}

Layer linear(std::string name, int64_t outputs) {
  return {Kind::kLinear, std::move(name), outputs};
}

Layer relu() { return {Kind::kRelu}; }

Layer max_pool(int64_t size) { return {Kind::kMaxPool, "", 0, size, size}; }

Layer dropout(double rate) {
  Layer layer{Kind::kDropout};
  layer.drop_rate = rate;
  return layer;
}

Layer subsample(int64_t channels, int64_t stride) {
  return {Kind::kSubsample, "", channels, 1, stride};
}

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

enum class Shortcut { kProject, kSubsample };

struct ResNet {
  int64_t depth = 0;
  Shortcut shortcut = Shortcut::kProject;
  bool group_norm = false;

  Layer norm(std::string name) const {
    Layer layer{group_norm ? Kind::kGroupNorm : Kind::kBatchNorm, std::move(name)};
    if (group_norm) layer.groups = 8;  // of 2, 4 and 8 channels in the three stages
    return layer;
  }
};

Layer basic_block(const ResNet& resnet, const std::string& name, int64_t channels, int64_t stride) {
  Layer block{Kind::kResidual};
  block.body = {conv(name + ".conv1", channels, 3, stride, 1, false), resnet.norm(name + ".bn1"),
                relu(), conv(name + ".conv2", channels, 3, 1, 1, false),
                resnet.norm(name + ".bn2")};
  if (stride == 1) return block;
  if (resnet.shortcut == Shortcut::kSubsample) {
    block.shortcut = {subsample(channels, stride)};
  } else {
    block.shortcut = {conv(name + ".downsample.0", channels, 1, stride, 0, false),
                      resnet.norm(name + ".downsample.1")};
  }
  return block;
}

// He et al.'s ResNet for CIFAR: three stages of (depth - 2) / 6 basic blocks.
Layers resnet_layers(const ResNet& resnet, int64_t classes) {
  Layers layers = {conv("conv1", 16, 3, 1, 1, false), resnet.norm("bn1"), relu()};
  for (int64_t stage = 1; stage <= 3; ++stage) {
    for (int64_t i = 0; i < (resnet.depth - 2) / 6; ++i) {
      layers.push_back(basic_block(resnet, fmt::format("layer{}.{}", stage, i), int64_t{8} << stage,
                                   stage > 1 && i == 0 ? 2 : 1));
      layers.push_back(relu());
    }
  }
  layers.push_back({Kind::kAvgPool});
  layers.push_back(linear("fc", classes));
  return layers;
}

std::optional<ResNet> parse_resnet(std::string_view name) {
  constexpr std::string_view kPrefix = "resnet", kSubsampling = "-a", kGroupNorm = "-gn";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  ResNet found;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, found.depth);
  const std::string_view suffix(rest, end - rest);
  if (suffix == kSubsampling) found.shortcut = Shortcut::kSubsample;
  found.group_norm = suffix == kGroupNorm;
  const bool known = suffix.empty() || suffix == kSubsampling || suffix == kGroupNorm;
  if (error != std::errc() || !known) return std::nullopt;
  if (found.depth < 8 || found.depth > 1202 || found.depth % 6 != 2) return std::nullopt;
  return found;
}

Layers named_layers(const std::string& name, int64_t classes) {
  if (name == "alexnet") return alexnet(classes);
  if (name == "alexnet-fc") return alexnet_fc(classes);
  if (const auto resnet = parse_resnet(name)) return resnet_layers(*resnet, classes);
  if (name == "small") return small(classes);
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

bool is_resnet(const std::string& name) { return parse_resnet(name).has_value(); }

const std::vector<std::string>& architecture_names() {
  static const std::vector<std::string> names = {"alexnet", "alexnet-fc", "resnet20", "resnet110",
                                                 "small"};
  return names;
}

Network build_network(const ModelOptions& options, const Shape& input, int64_t classes) {
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
