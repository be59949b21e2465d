#include "fedsmooth/engine/cpu/base_classifier.h"

#include <ATen/ATen.h>
#include <ATen/Version.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/engine/cpu/fast_network.h"
#include "fedsmooth/engine/torch/torch_script.h"
#include "fedsmooth/model/fold.h"

namespace fedsmooth {
namespace {

// The instructions by which LibTorch picks its kernels; others round differently. Only its
// configuration text tells them in all versions.
std::string cpu_capability() {
  const std::string text = at::show_config(), key = "CPU capability usage: ";
  const size_t found = text.find(key);
  if (found == std::string::npos) return "unknown";
  const size_t begin = found + key.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

std::string describe(const char* evaluator) {
  return fmt::format("cpu/fp32/{}x{}/{}", evaluator, kCpuBatch, cpu_arithmetic());
}

}  // namespace

std::string cpu_arithmetic() {
  return fmt::format("{}/{}/torch-{}", cpu_capability(), blas_name(), torch_version());
}

BaseClassifier base_classifier(const Model& trained) {
  // Folding changes rounding. Certificates are about the network that runs.
  const Model model = fold_batch_norm(trained);
  const int64_t classes = output_shape(model.network)[0];
  if (FastNetwork::supports(model.network)) {
    const FastNetwork network(model.network, model.weights, kCpuBatch);
    return {[network] { return Classifier(network); }, classes, kCpuBatch, describe("fast")};
  }
  const Classifier f = [model](const Tensor& images) {
    return forward(model.network, model.weights, images);
  };
  return {[f] { return f; }, classes, kCpuBatch, describe("libtorch")};
}

BaseClassifier base_classifier(const std::filesystem::path& torch_script, const Shape& input) {
  const Classifier f = load_torch_script(torch_script);
  const Tensor logits = f(at::full({kCpuBatch, input[0], input[1], input[2]}, 0.5));
  if (logits.dim() != 2 || logits.size(0) != kCpuBatch) {
    throw Error("{}: gives an output of shape [{}] for {} images, expected [{}, classes]",
                torch_script.string(), fmt::join(logits.sizes(), ", "), kCpuBatch, kCpuBatch);
  }
  return {[f] { return f; }, logits.size(1), kCpuBatch, describe("torchscript")};
}

}  // namespace fedsmooth
