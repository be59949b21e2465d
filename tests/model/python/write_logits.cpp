// The C++ half of interop.py.
//
//   write_logits write FOLDER   writes NAME.safetensors and, in NAME.logits.safetensors, images and
//                               the logits that this model gives for them
//   write_logits check FOLDER   reads NAME.rewritten.safetensors and wants the same logits from it
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/model/safetensors.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"alexnet", "resnet20", "small"};

// Weights at which the images matter to the logits: uniform with variance 2 / fan_in keeps the
// signal through the layers, and batch norm is not the identity.
Weights lively_weights(const Network& network) {
  Weights weights = initial_weights(network, Key{1});
  const std::vector<Parameter> wanted = parameters(network);
  for (size_t i = 0; i < weights.size(); ++i) {
    float* w = weights[i].floats();
    const int64_t count = weights[i].count();
    if (wanted[i].fan_in > 0) {
      for (int64_t j = 0; j < count; ++j) w[j] *= std::sqrt(6.0f);
    } else {
      fill_uniform({Key{2}, static_cast<uint32_t>(i)}, 0, w, count);
      for (int64_t j = 0; j < count; ++j) w[j] += 0.5f;
    }
  }
  return weights;
}

void write(const fs::path& folder, const std::string& name) {
  ModelOptions options{.name = name};
  set_default_normalization(options, "cifar10", 3);
  const Network network = build_network(options, {3, 32, 32}, 10);
  const Model model = {network, lively_weights(network), 0.25, {}};
  Array images({8, 3, 32, 32});
  fill_uniform({Key{3}}, 0, images.floats(), images.count());
  const Array logits = reference_logits(network, model.weights, images);
  write_file(folder / (name + ".safetensors"), format_model(model));
  write_file(folder / (name + ".logits.safetensors"),
             format_safetensors({{{"images", images}, {"logits", logits}}, {}}));
}

void check(const fs::path& folder, const std::string& name) {
  const std::string path = folder / (name + ".rewritten.safetensors");
  const Model model = parse_model(read_file(path), path, {}, nullptr);
  const Safetensors known =
      parse_safetensors(read_file(folder / (name + ".logits.safetensors")), name);
  const Array logits = reference_logits(model.network, model.weights, known.tensors.at("images"));
  if (!same_bits(logits, known.tensors.at("logits"))) throw Error("{}: other logits", path);
  if (model.sigma != 0.25) throw Error("{}: another sigma", path);
}

}  // namespace
}  // namespace fedsmooth

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  if (verb != "write" && verb != "check") {
    std::fprintf(stderr, "usage: write_logits write|check FOLDER\n");
    return 2;
  }
  try {
    for (const char* name : fedsmooth::kNames) {
      (verb == "write" ? fedsmooth::write : fedsmooth::check)(argv[2], name);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
