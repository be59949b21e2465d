#include "fedsmooth/engine/cpu/base_classifier.h"

#include <fmt/format.h>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/matrix_product.h"
#include "fedsmooth/engine/cpu/fast_network.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/model/fold.h"

namespace fedsmooth {
namespace {

std::string describe(const char* evaluator) {
  return fmt::format("cpu/fp32/{}x{}/{}", evaluator, kCpuBatch, cpu_arithmetic());
}

}  // namespace

std::string cpu_arithmetic() {
  switch (best_instructions()) {
    case Instructions::kAvx512:
      return "avx512";
    case Instructions::kAvx2:
      return "avx2";
    case Instructions::kPortable:
      return "portable";
  }
  throw Bug("cpu_arithmetic: unknown instructions");
}

BaseClassifier base_classifier(const Model& trained) {
  // Folding changes rounding. Certificates are about the network that runs.
  const Model model = fold_batch_norm(trained);
  const int64_t classes = output_shape(model.network)[0];
  if (FastNetwork::refusal(model.network).empty()) {
    const FastNetwork network(model.network, model.weights, kCpuBatch);
    return {[network] { return Classifier(network); }, classes, kCpuBatch, describe("fast")};
  }
  const auto make = [model]() -> Classifier {
    const std::shared_ptr<Passes> passes = reference_passes(model.network);
    passes->load(model.weights);
    return [passes](const Array& images) { return passes->forward(images, std::nullopt); };
  };
  return {make, classes, kCpuBatch, describe("reference")};
}

}  // namespace fedsmooth
