// Whether this build and this machine can use a GPU.
#pragma once

#include <string>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// For `device` auto, cpu or cuda: whether the GPU engine is to run the network. An Error that says
/// what is missing if it is cuda and cannot be.
bool use_gpu(const std::string& device, const Network& network);

/// Name of the GPU in use.
std::string gpu_name();

}  // namespace fedsmooth
