// Whether this build and this machine can use a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Why no GPU can be used; empty if one can.
std::string gpu_unavailable_reason();

/// For `device` auto, cpu or cuda: whether the GPU is to be used; if so, it is selected. `missing`
/// returns what is missing for that, and is not asked for cpu: looking for a GPU takes time. An
/// Error if it is cuda and something is.
bool use_gpu(const std::string& device, const std::function<std::string()>& missing);

/// What is missing for the GPU engine to train the network or, with its batch norms folded, to
/// count its votes; with the stage's name if it is one.
std::string missing_for_engine(const Network& network);

/// Bytes of the selected GPU's memory that are in use, by whomever; 0 if there is none.
int64_t gpu_bytes_in_use();

/// Which of several GPUs this process uses, modulo their number. Called once, before any thread.
void take_gpu(int number);

/// Makes that GPU the one of the calling thread. What is done there later stays with it.
void select_gpu();

}  // namespace fedsmooth
