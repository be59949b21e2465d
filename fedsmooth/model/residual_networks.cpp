#include "fedsmooth/model/residual_networks.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "fedsmooth/model/layer_makers.h"

namespace fedsmooth {
namespace {

using namespace layer_makers;
using Kind = Layer::Kind;
using Layers = std::vector<Layer>;

enum class Shortcut { kProject, kSubsample };

// A network of basic blocks: what differs between the CIFAR ResNets and ResNet-18.
struct ResNet {
  int64_t depth = 0;
  Shortcut shortcut = Shortcut::kProject;
  bool group_norm = false, standardize = false;
  int64_t stages = 3, channels = 16, blocks = 0;  // channels of the first stage, blocks of each
  std::string projection = "downsample", classifier = "fc";  // names of tensors

  Layer norm(std::string name) const {
    Layer layer{group_norm ? Kind::kGroupNorm : Kind::kBatchNorm, std::move(name)};
    if (group_norm) layer.groups = 8;  // of 2, 4 and 8 channels in the three stages
    return layer;
  }

  Layer convolution(std::string name, int64_t outputs, int64_t kernel, int64_t stride) const {
    Layer layer = conv(std::move(name), outputs, kernel, stride, kernel / 2, /*bias=*/false);
    layer.standardize = standardize;
    return layer;
  }
};

Layer basic_block(const ResNet& resnet, const std::string& name, int64_t channels, int64_t stride) {
  Layer block{Kind::kResidual};
  block.body = {resnet.convolution(name + ".conv1", channels, 3, stride),
                resnet.norm(name + ".bn1"), relu(),
                resnet.convolution(name + ".conv2", channels, 3, 1), resnet.norm(name + ".bn2")};
  if (stride == 1) return block;
  if (resnet.shortcut == Shortcut::kSubsample) {
    block.shortcut = {subsample(channels, stride)};
  } else {
    const std::string shortcut = fmt::format("{}.{}", name, resnet.projection);
    block.shortcut = {resnet.convolution(shortcut + ".0", channels, 1, stride),
                      resnet.norm(shortcut + ".1")};
  }
  return block;
}

// Stages of basic blocks; each but the first begins with a stride of 2 and twice the channels.
Layers resnet_layers(const ResNet& resnet, int64_t classes) {
  Layers made = {resnet.convolution("conv1", resnet.channels, 3, 1), resnet.norm("bn1"), relu()};
  for (int64_t stage = 0; stage < resnet.stages; ++stage) {
    for (int64_t i = 0; i < resnet.blocks; ++i) {
      made.push_back(basic_block(resnet, fmt::format("layer{}.{}", stage + 1, i),
                                 resnet.channels << stage, stage > 0 && i == 0 ? 2 : 1));
      made.push_back(relu());
    }
  }
  made.push_back({Kind::kAvgPool});
  made.push_back(linear(resnet.classifier, classes));
  return made;
}

constexpr std::string_view kResNet = "resnet", kSubsampling = "-a", kGroupNorm = "-gn",
                           kStandardized = "-ws";

// resnetN of any N, with a suffix that is known.
std::optional<ResNet> parse_resnet(std::string_view name) {
  if (!name.starts_with(kResNet)) return std::nullopt;
  ResNet found;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kResNet.size(), end, found.depth);
  std::string_view suffix(rest, end - rest);
  found.standardize = suffix.ends_with(kStandardized);
  if (found.standardize) suffix.remove_suffix(kStandardized.size());
  if (suffix == kSubsampling && !found.standardize) found.shortcut = Shortcut::kSubsample;
  found.group_norm = suffix == kGroupNorm;
  const bool known = suffix.empty() || found.shortcut == Shortcut::kSubsample || found.group_norm;
  if (error != std::errc() || !known) return std::nullopt;
  found.blocks = (found.depth - 2) / 6;
  return found;
}

bool has_resnet_depth(const ResNet& resnet) {
  return resnet.depth >= 8 && resnet.depth <= 1202 && resnet.depth % 6 == 2;
}

ResNet resnet18() {
  return {.depth = 18,
          .stages = 4,
          .channels = 64,
          .blocks = 2,
          .projection = "shortcut",
          .classifier = "linear"};
}

struct WideResNet {
  int64_t depth = 0, width = 0;

  bool fits() const {
    return depth >= 10 && depth <= 1204 && depth % 6 == 4 && width >= 1 && width <= 100;
  }
};

// wrn-D-K of any D and K, written as here.
std::optional<WideResNet> parse_wide_resnet(const std::string& name) {
  constexpr std::string_view kPrefix = "wrn-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  WideResNet found;
  const char* const end = name.data() + name.size();
  const char* const depth_end = std::from_chars(name.data() + kPrefix.size(), end, found.depth).ptr;
  if (depth_end != end) std::from_chars(depth_end + 1, end, found.width);
  if (name != fmt::format("wrn-{}-{}", found.depth, found.width)) return std::nullopt;
  return found;
}

// norm, ReLU, convolution, twice. A block that keeps the shape adds its input to this. In one that
// changes it, the shortcut projects the input after the first norm and ReLU, which both paths read.
void add_wide_block(const std::string& name, int64_t in, int64_t out, int64_t stride, Layers& to) {
  const Layers first = {{Kind::kBatchNorm, name + ".bn1"}, relu()};
  Layer block{Kind::kResidual};
  if (in == out) {
    block.body = first;
  } else {
    to.insert(to.end(), first.begin(), first.end());
    block.shortcut = {conv(name + ".convShortcut", out, 1, stride, 0, false)};
  }
  const Layers rest = {conv(name + ".conv1", out, 3, stride, 1, false),
                       {Kind::kBatchNorm, name + ".bn2"},
                       relu(),
                       conv(name + ".conv2", out, 3, 1, 1, false)};
  block.body.insert(block.body.end(), rest.begin(), rest.end());
  to.push_back(block);
}

Layers wide_layers(const WideResNet& network, int64_t classes) {
  int64_t channels = 16;
  Layers made = {conv("conv1", channels, 3, 1, 1, false)};
  for (int64_t stage = 1; stage <= 3; ++stage) {
    const int64_t wider = (int64_t{8} << stage) * network.width;
    for (int64_t i = 0; i < (network.depth - 4) / 6; ++i) {
      add_wide_block(fmt::format("block{}.layer.{}", stage, i), channels, wider,
                     stage > 1 && i == 0 ? 2 : 1, made);
      channels = wider;
    }
  }
  made.push_back({Kind::kBatchNorm, "bn1"});
  made.push_back(relu());
  made.push_back({Kind::kAvgPool});
  made.push_back(linear("fc", classes));
  return made;
}

}  // namespace

std::optional<Layers> residual_layers(const std::string& name, int64_t classes) {
  if (name == "resnet18") return resnet_layers(resnet18(), classes);
  const auto resnet = parse_resnet(name);
  if (resnet && has_resnet_depth(*resnet)) return resnet_layers(*resnet, classes);
  const auto wide = parse_wide_resnet(name);
  if (wide && wide->fits()) return wide_layers(*wide, classes);
  return std::nullopt;
}

bool is_residual_network(const std::string& name) { return residual_layers(name, 1).has_value(); }

std::string depth_refusal(const std::string& name) {
  if (is_residual_network(name)) return {};
  if (parse_resnet(name)) return "a ResNet has 6 n + 2 layers, from 8 to 1202, or is resnet18";
  if (parse_wide_resnet(name)) {
    return "a Wide ResNet wrn-D-K has D = 6 n + 4 layers, from 10 to 1204, and K from 1 to 100";
  }
  return {};
}

}  // namespace fedsmooth
