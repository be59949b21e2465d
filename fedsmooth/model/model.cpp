#include "fedsmooth/model/model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/model/network_json.h"
#include "fedsmooth/model/safetensors.h"

namespace fedsmooth {
namespace {

using nlohmann::json;
using Tensors = std::map<std::string, Array>;

constexpr const char* kNetworkKey = "fedsmooth.network";
constexpr const char* kSigmaKey = "fedsmooth.sigma";
constexpr const char* kClassesKey = "fedsmooth.classes";

Tensors without_counters(const Tensors& tensors) {
  Tensors kept;
  for (const auto& [key, tensor] : tensors) {
    if (!key.ends_with(".num_batches_tracked")) kept[key] = tensor;
  }
  return kept;
}

// Without the prefixes that wrapping modules add to all names.
Tensors unwrap(Tensors tensors) {
  for (const std::string_view prefix : {"module.", "1.", "module."}) {
    const bool wrapped = std::all_of(tensors.begin(), tensors.end(), [&](const auto& entry) {
      return std::string_view(entry.first).substr(0, prefix.size()) == prefix;
    });
    if (!wrapped) continue;
    Tensors inner;
    for (const auto& [key, tensor] : tensors) inner[key.substr(prefix.size())] = tensor;
    tensors = std::move(inner);
  }
  return tensors;
}

// The first thing that keeps `tensors` from being the weights of `network`, or nothing.
std::optional<std::string> mismatch(const Network& network, const Tensors& tensors) {
  const std::vector<Parameter> wanted = parameters(network);
  for (const Parameter& p : wanted) {
    const auto found = tensors.find(p.name);
    if (found == tensors.end()) return fmt::format("tensor {:?} is missing", p.name);
    if (found->second.type() != Array::Type::kFloat) {
      return fmt::format("tensor {:?} holds integers", p.name);
    }
    if (found->second.sizes() != p.shape) {
      return fmt::format("tensor {:?} has shape [{}], expected [{}]", p.name,
                         fmt::join(found->second.sizes(), ", "), fmt::join(p.shape, ", "));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    const bool known = std::any_of(wanted.begin(), wanted.end(),
                                   [&](const Parameter& p) { return p.name == name; });
    if (!known) return fmt::format("tensor {:?} does not belong to it", name);
  }
  return std::nullopt;
}

// The named network that `tensors` are the weights of, or nothing.
std::optional<Network> recognize(const Tensors& tensors, ModelOptions options,
                                 const ImageKind& data) {
  // What is wrong here is wrong for all of them.
  Layer normalize{Layer::Kind::kNormalize};
  normalize.mean = options.mean;
  normalize.sd = options.sd;
  shape_after(normalize, data.input);
  for (const std::string& candidate : architecture_names()) {
    options.name = candidate;
    try {
      Network network = build_network(options, data.input, data.classes);
      if (!mismatch(network, tensors)) return network;
    } catch (const Error&) {
      // The images are too small for this one.
    }
  }
  return std::nullopt;
}

Network find_network(const Tensors& tensors, const ModelOptions& options, const ImageKind* data,
                     const std::string& name) {
  if (data == nullptr) {
    throw Error("{}: does not describe its network; give the data set it is for with --data.name",
                name);
  }
  if (!options.name.empty()) return build_network(options, data->input, data->classes);
  if (auto network = recognize(tensors, options, *data)) return *network;
  throw Error(
      "{}: its tensors fit none of {} for {} classes and images [{}]; name the network with "
      "--model.name",
      name, fmt::join(architecture_names(), ", "), data->classes, fmt::join(data->input, ", "));
}

double parse_sigma(const std::string& text, const std::string& name) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>())) {
    throw Error("{}: metadata {} is {:?}, not a noise level", name, kSigmaKey, text);
  }
  return value.get<double>();
}

std::vector<std::string> parse_classes(const std::string& text, const std::string& name) {
  const json list = json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> classes;
  const bool strings = list.is_array() && std::all_of(list.begin(), list.end(),
                                                      [](const json& v) { return v.is_string(); });
  if (!strings) throw Error("{}: metadata {} is not a list of names", name, kClassesKey);
  for (const json& item : list) classes.push_back(item.get<std::string>());
  return classes;
}

// Classes are the channels of an output of one pixel.
void check_classes(const Model& model, const std::string& name) {
  const Shape output = output_shape(model.network);
  if (output[1] != 1 || output[2] != 1) {
    throw Error("{}: its network gives [{}], not one value per class", name,
                fmt::join(output, ", "));
  }
  const std::vector<std::string>& names = model.class_names;
  if (!names.empty() && std::ssize(names) != output[0]) {
    throw Error("{}: names {} classes, its network gives {}", name, names.size(), output[0]);
  }
}

// A batch norm with a variance below zero answers NaN. One of zero is that of a dead channel.
void check_variance(const Parameter& p, const Array& values, const std::string& name) {
  const auto possible = [](float value) { return value >= 0; };
  if (!p.is_variance() ||
      std::all_of(values.floats(), values.floats() + values.count(), possible)) {
    return;
  }
  throw Error("{}: {:?} has variances below zero; the model is damaged", name, p.name);
}

void check_fits(const Model& model, const ImageKind& data, const std::string& name) {
  if (model.network.input != data.input) {
    throw Error("{}: made for images [{}], the data has [{}]", name,
                fmt::join(model.network.input, ", "), fmt::join(data.input, ", "));
  }
  const int64_t classes = output_shape(model.network)[0];
  if (classes != data.classes) {
    throw Error("{}: gives {} classes, the data has {}", name, classes, data.classes);
  }
}

}  // namespace

std::string format_model(const Model& model) {
  const std::vector<Parameter> wanted = parameters(model.network);
  check(wanted.size() == model.weights.size(), "format_model: {} tensors, the network has {}",
        model.weights.size(), wanted.size());
  Safetensors content;
  for (size_t i = 0; i < wanted.size(); ++i) content.tensors[wanted[i].name] = model.weights[i];
  check(content.tensors.size() == wanted.size(), "format_model: two layers share a name");
  const json class_names = model.class_names;  // which need not be UTF-8
  const auto replace = json::error_handler_t::replace;
  content.metadata = {{"format", "pt"},
                      {kNetworkKey, to_json(model.network).dump()},
                      {kSigmaKey, fmt::format("{}", model.sigma)},
                      {kClassesKey, class_names.dump(-1, ' ', false, replace)}};
  return format_safetensors(content);
}

Model parse_model(std::string_view bytes, const std::string& name, const ModelOptions& options,
                  const ImageKind* data) {
  const Safetensors content = parse_safetensors(bytes, name);
  const auto metadata = [&](const char* key) -> const std::string* {
    const auto found = content.metadata.find(key);
    return found == content.metadata.end() ? nullptr : &found->second;
  };
  Tensors tensors = without_counters(content.tensors);
  Model model;
  if (const std::string* text = metadata(kNetworkKey)) {
    const json network = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    model.network = network_from_json(network, fmt::format("{}: {}", name, kNetworkKey));
  } else {
    Tensors inner = unwrap(tensors);
    model.network = find_network(inner, options, data, name);
    // A layer may itself be called "1".
    if (mismatch(model.network, tensors)) tensors = std::move(inner);
  }
  if (const std::string* text = metadata(kSigmaKey)) model.sigma = parse_sigma(*text, name);
  if (const std::string* text = metadata(kClassesKey)) {
    model.class_names = parse_classes(*text, name);
  }
  if (const auto problem = mismatch(model.network, tensors)) {
    throw Error("{}: not the weights of network {:?}: {}", name, model.network.name, *problem);
  }
  check_classes(model, name);
  if (data != nullptr) check_fits(model, *data, name);
  for (const Parameter& p : parameters(model.network)) {
    model.weights.push_back(tensors.at(p.name));
    check_variance(p, model.weights.back(), name);
  }
  return model;
}

Model load_model(const std::filesystem::path& path) {
  return parse_model(read_file(path), path.string(), {}, nullptr);
}

}  // namespace fedsmooth
