// TorchScript modules as functions of tensors; torch_engine.h has the classifiers made of them.
#pragma once

#include <filesystem>

#include "fedsmooth/engine/torch/tensors.h"

namespace fedsmooth {

/// A module saved by torch.jit.save, in evaluation mode, as a function of tensors on the CPU or the
/// GPU. An Error names what is wrong with the file.
TensorFunction load_torch_script(const std::filesystem::path& path, bool gpu);

}  // namespace fedsmooth
