// A trained network with all that certification needs to know about it, and its file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fedsmooth/model/architectures.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

struct Model {
  Network network;
  Weights weights;
  double sigma = 0.0;                    // the noise it was trained for; 0: not known
  std::vector<std::string> class_names;  // may be empty
};

/// What a data set asks of its models.
struct ImageKind {
  Shape input = {};
  int64_t classes = 0;
};

/// A safetensors file with the network, its normalisation, sigma and class names in the metadata.
std::string format_model(const Model& model);

/// Reads what format_model() wrote, also after Python rewrote it, or a plain state dict as the
/// common PyTorch codes save it: then the network is `options.name` if that is not empty, else the
/// named network whose tensors fit. Its keys may carry the prefixes that Sequential(normalize, net)
/// and DataParallel add (1. and module.). `data` may be null for files that describe their network.
Model parse_model(std::string_view bytes, const std::string& name, const ModelOptions& options,
                  const ImageKind* data);

/// Reads a model file that describes its network, as `fedsmooth train` writes it.
Model load_model(const std::filesystem::path& path);

}  // namespace fedsmooth
