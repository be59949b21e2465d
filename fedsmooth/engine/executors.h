// Which executor trains: the GPU's where there is one and it knows the network's layers, else the
// threaded one.
#pragma once

#include <memory>
#include <string>

#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

struct ChosenExecutor {
  std::unique_ptr<Executor> executor;
  std::string device;  // "cpu", or the GPU's name and the precision
};

/// `device` is auto, cpu or cuda. An Error if it is cuda and something is missing for that.
ChosenExecutor choose_executor(const std::string& device, int threads, const Network& network);

}  // namespace fedsmooth
