// A trained network with the facts that certification needs, and its file.
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
  double sigma = 0.0;                    // noise level of its training; 0: not known
  std::vector<std::string> class_names;  // may be empty
};

/// The shape of a data set's images and the number of its classes, which a model must fit.
struct ImageKind {
  Shape input = {};
  int64_t classes = 0;
};

/// Returns the bytes of a safetensors file with the weights, and with the network, its
/// normalisation, sigma and class names in the metadata.
std::string format_model(const Model& model);

/// Reads a file of format_model(), also after Python's safetensors package has rewritten it, or a
/// plain state dict as the common PyTorch codes save it. For a state dict the network is
/// `options.name` if that is not empty, else the named network whose tensors fit; its keys may have
/// the prefixes that Sequential(normalize, net) and DataParallel add (1. and module.). `data` may
/// be null for files that describe their network. Throws an Error that begins with `name`.
Model parse_model(std::string_view bytes, const std::string& name, const ModelOptions& options,
                  const ImageKind* data);

/// Reads a model file that describes its network, as `fedsmooth train` writes it.
Model load_model(const std::filesystem::path& path);

}  // namespace fedsmooth
