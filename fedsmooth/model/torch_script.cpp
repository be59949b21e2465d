#include "fedsmooth/model/torch_script.h"

#include <torch/script.h>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

torch::jit::Module load(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) throw Error("{}: no such file", path.string());
  try {
    return torch::jit::load(path.string(), torch::kCPU);
  } catch (const c10::Error& error) {
    throw Error("{}: not a TorchScript module: {}", path.string(), first_line(error));
  } catch (const std::exception&) {
    throw Error("{}: not a TorchScript module", path.string());
  }
}

}  // namespace

std::function<Tensor(const Tensor&)> load_torch_script(const std::filesystem::path& path) {
  // The optimising executor rewrites the graph after its first runs; f must stay one function.
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::Module module = load(path);
  for (const torch::jit::Module& part : module.modules()) {
    if (part.hasattr("training") && part.is_training()) {
      throw Error("{}: saved in training mode; call .eval() before torch.jit.save", path.string());
    }
  }
  return [module, name = path.string()](const Tensor& images) mutable -> Tensor {
    torch::NoGradGuard no_grad;
    try {
      const torch::jit::IValue output = module.forward({images});
      if (!output.isTensor()) throw Error("{}: gives no tensor", name);
      return output.toTensor().to(torch::kFloat);
    } catch (const c10::Error& error) {
      throw Error("{}: fails on images [{}]: {}", name, fmt::join(images.sizes(), ", "),
                  first_line(error));
    }
  };
}

}  // namespace fedsmooth
