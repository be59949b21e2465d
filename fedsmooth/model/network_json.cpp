#include "fedsmooth/model/network_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <type_traits>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/model/layer_properties.h"

namespace fedsmooth {
namespace {

using nlohmann::json;
using Kind = Layer::Kind;

constexpr int64_t kMaxOutputs = 1 << 20;
constexpr int64_t kMaxWindow = 1 << 10;
constexpr int64_t kMaxImageSide = 1 << 12;
constexpr size_t kMaxLayers = 10'000;

// Reads the members of one JSON object and refuses those that nobody asked for.
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) throw Error("{}: not a table", where_);
  }

  const json* find(const std::string& key) {
    known_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  int64_t integer(const std::string& key, int64_t fallback, int64_t low, int64_t high) {
    const json* value = find(key);
    if (value == nullptr) {
      if (fallback < low) throw Error("{}: has no \"{}\"", where_, key);
      return fallback;
    }
    return integer(*value, key, low, high);
  }

  int64_t integer(const json& value, const std::string& key, int64_t low, int64_t high) {
    if (!value.is_number_integer()) throw Error("{}.{}: not an integer", where_, key);
    const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(high);
    const int64_t number = too_large ? high + 1 : value.get<int64_t>();
    if (number < low || number > high) {
      throw Error("{}.{}={}: must be from {} to {}", where_, key, value.dump(), low, high);
    }
    return number;
  }

  std::string string(const std::string& key, const std::string& fallback) {
    const json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) throw Error("{}.{}: not a string", where_, key);
    return value->get<std::string>();
  }

  bool boolean(const std::string& key, bool fallback) {
    const json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) throw Error("{}.{}: not true or false", where_, key);
    return value->get<bool>();
  }

  double number(const json& value, const std::string& key) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      throw Error("{}.{}: not a finite number", where_, key);
    }
    return value.get<double>();
  }

  std::vector<double> numbers(const std::string& key) {
    const json* value = find(key);
    if (value == nullptr || !value->is_array()) throw Error("{}.{}: not a list", where_, key);
    std::vector<double> found;
    for (const json& item : *value) found.push_back(number(item, key));
    return found;
  }

  void refuse_others() const {
    for (const auto& [key, value] : object_.items()) {
      if (known_.count(key) == 0) throw Error("{}: unknown key {:?}", where_, key);
    }
  }

 private:
  const json& object_;
  std::string where_;
  std::set<std::string> known_;
};

std::vector<Layer> read_layers(const json& list, const std::string& where,
                               const std::string& prefix, bool nested);

Layer read_layer(const json& object, const std::string& where, const std::string& default_name,
                 bool nested) {
  Members members(object, where);
  const std::string kind = members.string("kind", "");
  const auto found = layer_kinds().find(kind);
  if (found == layer_kinds().end()) {
    std::vector<std::string> names;
    for (const auto& row : layer_kinds()) names.push_back(row.first);
    throw Error("{}.kind={:?}: no such kind of layer; use one of {}", where, kind,
                fmt::join(names, ", "));
  }
  Layer layer{found->second};
  switch (layer.kind) {
    case Kind::kNormalize:
      layer.mean = members.numbers("mean");
      layer.sd = members.numbers("sd");
      if (layer.mean.size() != layer.sd.size()) {
        throw Error("{}: {} means and {} sds", where, layer.mean.size(), layer.sd.size());
      }
      for (const double sd : layer.sd) {
        if (!(sd > 0)) throw Error("{}.sd={}: must be positive", where, sd);
      }
      break;
    case Kind::kConv:
      layer.padding = members.integer("padding", 0, 0, kMaxWindow);
      layer.kernel = members.integer("kernel", 0, 1, kMaxWindow);
      layer.stride = members.integer("stride", 1, 1, kMaxWindow);
      layer.standardize = members.boolean("standardize", false);
      [[fallthrough]];
    case Kind::kLinear:
      layer.outputs = members.integer("outputs", 0, 1, kMaxOutputs);
      layer.bias = members.boolean("bias", true);
      [[fallthrough]];
    case Kind::kBatchNorm:
      layer.name = members.string("name", default_name);
      break;
    case Kind::kGroupNorm:
      layer.name = members.string("name", default_name);
      layer.groups = members.integer("groups", 0, 1, kMaxOutputs);
      break;
    case Kind::kMaxPool:
      layer.kernel = members.integer("kernel", 0, 1, kMaxWindow);
      layer.stride = members.integer("stride", layer.kernel, 1, kMaxWindow);
      break;
    case Kind::kSubsample:
      layer.stride = members.integer("stride", 0, 1, kMaxWindow);
      layer.outputs = members.integer("outputs", 0, 1, kMaxOutputs);
      break;
    case Kind::kDropout: {
      const json* rate = members.find("drop_rate");
      layer.drop_rate = rate == nullptr ? 0.5 : members.number(*rate, "drop_rate");
      if (!(layer.drop_rate >= 0 && layer.drop_rate < 1)) {
        throw Error("{}.drop_rate={}: must be in [0, 1)", where, layer.drop_rate);
      }
      break;
    }
    case Kind::kLeakyRelu: {
      const json* slope = members.find("slope");
      if (slope != nullptr) layer.slope = members.number(*slope, "slope");
      if (!(layer.slope >= 0 && layer.slope <= 1)) {
        throw Error("{}.slope={}: must be in [0, 1]", where, layer.slope);
      }
      break;
    }
    case Kind::kResidual: {
      if (nested) throw Error("{}: a residual block inside a residual block", where);
      const json *body = members.find("body"), *shortcut = members.find("shortcut");
      if (body == nullptr) throw Error("{}: has no \"body\"", where);
      layer.body = read_layers(*body, where + ".body", default_name + ".body.", true);
      if (shortcut != nullptr) {
        layer.shortcut =
            read_layers(*shortcut, where + ".shortcut", default_name + ".shortcut.", true);
      }
      break;
    }
    case Kind::kRelu:
    case Kind::kSilu:
    case Kind::kGelu:
    case Kind::kAvgPool:
      break;
  }
  members.refuse_others();
  return layer;
}

std::vector<Layer> read_layers(const json& list, const std::string& where,
                               const std::string& prefix, bool nested) {
  if (!list.is_array()) throw Error("{}: not a list of layers", where);
  if (list.size() > kMaxLayers) throw Error("{}: {} layers are too many", where, list.size());
  std::vector<Layer> layers;
  for (size_t i = 0; i < list.size(); ++i) {
    layers.push_back(
        read_layer(list[i], fmt::format("{}[{}]", where, i), prefix + std::to_string(i), nested));
  }
  return layers;
}

json layer_json(const Layer& layer) {
  check(has_only_its_properties(layer), "to_json: layer {:?} has an unknown property", layer.name);
  json object = {{"kind", kind_name(layer.kind)}};
  if (count_tensors(layer) > 0) object["name"] = layer.name;
  for_each_property(layer.kind, [&](const char* key, auto member) {
    if constexpr (std::is_same_v<decltype(member), std::vector<Layer> Layer::*>) {
      object[key] = to_json(layer.*member);
    } else if (std::string_view(key) == "standardize" && !layer.standardize) {
      // Left out, so that model files and their digests are those of versions without it.
    } else {
      object[key] = layer.*member;
    }
  });
  return object;
}

}  // namespace

const std::map<std::string, Kind>& layer_kinds() {
  static const std::map<std::string, Kind> table = {{"normalize", Kind::kNormalize},
                                                    {"conv", Kind::kConv},
                                                    {"batch-norm", Kind::kBatchNorm},
                                                    {"relu", Kind::kRelu},
                                                    {"max-pool", Kind::kMaxPool},
                                                    {"avg-pool", Kind::kAvgPool},
                                                    {"dropout", Kind::kDropout},
                                                    {"linear", Kind::kLinear},
                                                    {"residual", Kind::kResidual},
                                                    {"subsample", Kind::kSubsample},
                                                    {"group-norm", Kind::kGroupNorm},
                                                    {"leaky-relu", Kind::kLeakyRelu},
                                                    {"silu", Kind::kSilu},
                                                    {"gelu", Kind::kGelu}};
  return table;
}

const std::string& kind_name(Kind kind) {
  for (const auto& [name, value] : layer_kinds()) {
    if (value == kind) return name;
  }
  throw Bug("kind_name: unknown kind of layer");
}

json to_json(const std::vector<Layer>& layers) {
  json list = json::array();
  for (const Layer& layer : layers) list.push_back(layer_json(layer));
  return list;
}

std::vector<Layer> layers_from_json(const json& list, const std::string& where) {
  return read_layers(list, where, "layers.", false);
}

json to_json(const Network& network) {
  return {{"name", network.name}, {"input", network.input}, {"layers", to_json(network.layers)}};
}

Network network_from_json(const json& object, const std::string& where) {
  Members members(object, where);
  Network network{members.string("name", "")};
  const json* input = members.find("input");
  if (input == nullptr || !input->is_array() || input->size() != 3) {
    throw Error("{}.input: not [channels, height, width]", where);
  }
  for (size_t i = 0; i < 3; ++i) {
    network.input[i] = members.integer((*input)[i], "input", 1, kMaxImageSide);
  }
  const json* layers = members.find("layers");
  if (layers == nullptr) throw Error("{}: has no \"layers\"", where);
  network.layers = layers_from_json(*layers, where + ".layers");
  members.refuse_others();
  parameters(network);  // do the layers fit together?
  return network;
}

}  // namespace fedsmooth
