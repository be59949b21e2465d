#include "fedsmooth/engine/torch/torch_script.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/script.h>
#include <torch/version.h>

#include <limits>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/torch/torch_engine.h"

namespace fedsmooth {
namespace {

// Returns the instruction set by which LibTorch chooses its kernels, as others round differently.
// Only LibTorch's configuration text states it in all versions.
std::string cpu_capability() {
  const std::string text = at::show_config(), key = "CPU capability usage: ";
  const size_t found = text.find(key);
  if (found == std::string::npos) return "unknown";
  const size_t begin = found + key.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

// Returns the line that says what went wrong: the last line of a traceback of the interpreter, else
// the first line.
std::string cause(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  std::string text = ours != nullptr ? ours->what_without_backtrace() : error.what();
  text.erase(text.find_last_not_of('\n') + 1);
  const bool traceback = text.find("Traceback of TorchScript") != std::string::npos;
  return traceback ? text.substr(text.rfind('\n') + 1) : text.substr(0, text.find('\n'));
}

torch::jit::Module load(const std::filesystem::path& path, torch::DeviceType device) {
  if (!std::filesystem::is_regular_file(path)) throw Error("{}: no such file", path.string());
  try {
    return torch::jit::load(path.string(), device);
  } catch (const std::exception& error) {
    throw Error("{}: not a TorchScript module: {}", path.string(), cause(error));
  }
}

// Logits [B, K] as floats. In rows where rounding made another class the largest, such as
// log-likelihoods near -1e9 in double, the difference to the largest is rounded instead, so that
// the module keeps its answers. Other rows keep their bits.
at::Tensor round_logits(const at::Tensor& logits) {
  const at::Tensor rounded = logits.to(at::kFloat);
  const bool is_exact = logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kHalf ||
                        logits.scalar_type() == at::kBFloat16;
  if (is_exact || logits.dim() != 2 || logits.numel() == 0) return rounded;
  const at::Tensor answer = logits.argmax(1, true);
  const at::Tensor lost = (rounded.argmax(1, true) != answer) & rounded.isfinite().all(1, true);
  const at::Tensor below = (logits - logits.detach().amax(1, true)).to(at::kFloat);
  const at::Tensor is_answer = at::zeros_like(rounded, at::kBool).scatter(1, answer, true);
  // A difference may be too small for a float, but only the answer may be 0.
  const at::Tensor others = below.clamp_max(-std::numeric_limits<float>::min());
  return at::where(lost, at::where(is_answer, below, others), rounded);
}

}  // namespace

TensorFunction load_torch_script(const std::filesystem::path& path, bool gpu) {
  torch::jit::Module module = load(path, gpu ? torch::kCUDA : torch::kCPU);
  for (const torch::jit::Module& part : module.modules()) {
    if (part.hasattr("training") && part.is_training()) {
      throw Error("{}: saved in training mode; call .eval() before torch.jit.save", path.string());
    }
  }
  for (const torch::Tensor& weight : module.parameters()) weight.requires_grad_(false);
  return [module, name = path.string()](const at::Tensor& images) mutable -> at::Tensor {
    // The optimising executor rewrites the graph after its first runs, but f must stay one
    // function. This switch and the number of LibTorch's threads are settings of each thread.
    torch::jit::setGraphExecutorOptimize(false);
    at::set_num_threads(1);
    torch::jit::IValue output;
    try {
      output = module.forward({images.clone()});  // a module may change its argument
    } catch (const std::exception& error) {
      throw Error("{}: fails on images [{}]: {}", name, fmt::join(images.sizes(), ", "),
                  cause(error));
    }
    if (!output.isTensor()) throw Error("{}: gives no tensor", name);
    return round_logits(output.toTensor());
  };
}

std::string missing_for_torch_gpu() {
  return at::hasCUDA() ? "" : "this needs a LibTorch built for CUDA";
}

BaseClassifier torch_script_classifier(const std::filesystem::path& path, const Shape& input) {
  constexpr int64_t kBatch = 192;
  const TensorFunction module = load_torch_script(path, /*gpu=*/false);
  const Classifier f = [module](const Array& images) {
    c10::NoGradGuard no_grad;
    return to_array(module(as_tensor(images)));
  };
  const Array logits = f(Array::full({kBatch, input[0], input[1], input[2]}, 0.5f));
  if (logits.axes() != 2 || logits.size(0) != kBatch) {
    throw Error("{}: gives an output of shape [{}] for {} images, expected [{}, classes]",
                path.string(), fmt::join(logits.sizes(), ", "), kBatch, kBatch);
  }
  return {
      [f] { return f; }, logits.size(1), kBatch,
      fmt::format("cpu/fp32/torchscriptx{}/{}/torch-{}", kBatch, cpu_capability(), TORCH_VERSION)};
}

DifferentiableClassifier torch_script_gradients(const std::filesystem::path& path) {
  struct LastPass {
    at::Tensor images, logits;
  };
  const auto last = std::make_shared<LastPass>();
  const TensorFunction module = load_torch_script(path, /*gpu=*/false);
  return {[=](const Array& images) {
            c10::AutoGradMode enable(true);
            last->images = as_tensor(images).clone().requires_grad_(true);
            last->logits = module(last->images);
            return to_array(last->logits.detach());
          },
          [=](const Array& gradient) {
            return to_array(
                torch::autograd::grad({last->logits}, {last->images}, {as_tensor(gradient)})[0]);
          }};
}

}  // namespace fedsmooth
