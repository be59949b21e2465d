// TorchScript modules: any model that takes images [B, C, H, W] in [0, 1] and gives logits.
#pragma once

#include <filesystem>
#include <functional>

#include "fedsmooth/base/tensor.h"

namespace fedsmooth {

/// Loads a module saved by torch.jit.save. One that was saved in training mode is refused, as
/// dropout and batch statistics would make its answers random. Gradients reach the images where the
/// caller enables them, never the weights. With `gpu` it takes and gives tensors there.
std::function<Tensor(const Tensor&)> load_torch_script(const std::filesystem::path& path,
                                                       bool gpu = false);

}  // namespace fedsmooth
