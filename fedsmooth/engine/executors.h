// Chooses the executor: the GPU's if there is a GPU and its engine knows the network's layers, else
// the threaded one.
#pragma once

#include <memory>
#include <string>

#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

struct ChosenExecutor {
  std::unique_ptr<Executor> executor;
  std::string device;  // "cpu", or the GPU's name and the precision
};

/// `device` is auto, cpu or cuda. Throws an Error if it is cuda and the build, the machine or the
/// network does not allow that.
ChosenExecutor choose_executor(const std::string& device, int threads, const Network& network);

}  // namespace fedsmooth
