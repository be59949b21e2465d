#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/torch/torch_engine.h"

namespace fedsmooth {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& script) {
  throw Error(
      "{}: TorchScript needs LibTorch, which this build lacks; build with "
      "`make TORCH=debian`, or save the weights as .safetensors",
      script.string());
}

}  // namespace

std::string missing_for_torch_gpu() { return "this needs LibTorch, which this build lacks"; }

BaseClassifier torch_gpu_classifier(const Model&) { throw Bug("LibTorch: not in this build"); }

BaseClassifier torch_script_gpu_classifier(const std::filesystem::path& path, int64_t,
                                           const Shape&) {
  refuse(path);
}

BaseClassifier torch_script_classifier(const std::filesystem::path& path, const Shape&) {
  refuse(path);
}

DifferentiableClassifier torch_script_gradients(const std::filesystem::path& path) { refuse(path); }

}  // namespace fedsmooth
