// A network as JSON, as model files store it and [[model.layers]] in an experiment describes it:
//
//   {"kind": "conv", "name": "features.0", "outputs": 64, "kernel": 11, "stride": 4, "padding": 5}
//
// Kinds are those of layer_kinds(), with the keys of for_each_property(). A layer without a name is
// called after its place: layers.3, layers.3.body.0.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Returns every kind of layer by its name in JSON.
const std::map<std::string, Layer::Kind>& layer_kinds();
const std::string& kind_name(Layer::Kind kind);

nlohmann::json to_json(const std::vector<Layer>& layers);
/// Reads a list of layers. Throws an Error that begins with `where` for an unknown kind or key, a
/// wrong type or a value out of range.
std::vector<Layer> layers_from_json(const nlohmann::json& json, const std::string& where);

nlohmann::json to_json(const Network& network);
Network network_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace fedsmooth
