// The C++ half of interop.py.
//
//   write_logits write FOLDER   writes NAME.safetensors and, in NAME.logits.safetensors, images and
//                               the logits that this model gives for them
//   write_logits check FOLDER   reads NAME.rewritten.safetensors and wants the same logits from it
//   write_logits compare FOLDER reads every NAME.state-dict.safetensors as the network NAME and
//                               wants the logits of NAME.expected.safetensors for its images
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/engine/cpu/fast_network.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/model/fold.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/model/safetensors.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"alexnet", "resnet20", "resnet8-gn-ws", "small"};

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

// Up to 28 layers of sums of up to 5760 products each round by 2^-24 sqrt(5760): 1e-4 of what the
// images change. Votes are counted with folded norms by the fast evaluator.
void expect_logits(const Array& found, const Array& expected, const std::string& what) {
  const int64_t classes = expected.size(1);
  double off = 0, size = 0;  // size: what the images change
  for (int64_t i = 0; i < expected.count(); ++i) {
    const float* logits = expected.floats();
    off = std::max<double>(off, std::abs(found.floats()[i] - logits[i]));
    size = std::max<double>(size, std::abs(logits[i] - logits[i % classes]));
  }
  fmt::print("{}: relative difference {:.1e}\n", what, off / size);
  if (!(off <= 1e-4 * size)) throw Error("{}: other logits", what);
}

void compare(const fs::path& state_dict, const std::string& name) {
  const ModelOptions options{name, {0.5, 0.4, 0.3}, {0.2, 0.25, 0.3}};
  const ImageKind data = {{3, 32, 32}, 10};
  const Model model = parse_model(read_file(state_dict), state_dict, options, &data);
  const Safetensors known = parse_safetensors(
      read_file(state_dict.parent_path() / (name + ".expected.safetensors")), name);
  const Array &images = known.tensors.at("images"), &logits = known.tensors.at("logits");
  expect_logits(reference_logits(model.network, model.weights, images), logits, name);
  const Model folded = fold_batch_norm(model);
  expect_logits(FastNetwork(folded.network, folded.weights, images.size(0))(images), logits,
                name + ", fast");
}

void compare_all(const fs::path& folder) {
  constexpr std::string_view kEnd = ".state-dict.safetensors";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename();
    if (file.ends_with(kEnd)) compare(entry.path(), file.substr(0, file.size() - kEnd.size()));
  }
}

}  // namespace
}  // namespace fedsmooth

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  if (verb != "write" && verb != "check" && verb != "compare") {
    std::fprintf(stderr, "usage: write_logits write|check|compare FOLDER\n");
    return 2;
  }
  try {
    if (verb == "compare") {
      fedsmooth::compare_all(argv[2]);
      return 0;
    }
    for (const char* name : fedsmooth::kNames) {
      (verb == "write" ? fedsmooth::write : fedsmooth::check)(argv[2], name);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
