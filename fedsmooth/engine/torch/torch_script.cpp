#include "fedsmooth/engine/torch/torch_script.h"

#include <torch/script.h>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

// The line that says what went wrong: the last one where the interpreter failed, as Python's
// tracebacks have it, else the first.
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

}  // namespace

std::function<Tensor(const Tensor&)> load_torch_script(const std::filesystem::path& path,
                                                       bool gpu) {
  torch::jit::Module module = load(path, gpu ? torch::kCUDA : torch::kCPU);
  for (const torch::jit::Module& part : module.modules()) {
    if (part.hasattr("training") && part.is_training()) {
      throw Error("{}: saved in training mode; call .eval() before torch.jit.save", path.string());
    }
  }
  for (const torch::Tensor& weight : module.parameters()) weight.requires_grad_(false);
  return [module, name = path.string()](const Tensor& images) mutable -> Tensor {
    // The optimising executor rewrites the graph after its first runs; f must stay one function.
    // The switch is each thread's own.
    torch::jit::setGraphExecutorOptimize(false);
    torch::jit::IValue output;
    try {
      output = module.forward({images.clone()});  // it may change its argument
    } catch (const std::exception& error) {
      throw Error("{}: fails on images [{}]: {}", name, fmt::join(images.sizes(), ", "),
                  cause(error));
    }
    if (!output.isTensor()) throw Error("{}: gives no tensor", name);
    return output.toTensor().to(torch::kFloat);
  };
}

}  // namespace fedsmooth
