// Whether this build and this machine can use a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Returns why no GPU can be used; empty if one can.
std::string gpu_unavailable_reason();

/// Returns whether `device` (auto, cpu or cuda) means the GPU, and selects it for this thread if
/// so. `missing` returns what the GPU lacks, empty if nothing; it is not called for cpu, as looking
/// for a GPU takes time. Throws an Error if `device` is cuda and something is missing.
bool use_gpu(const std::string& device, const std::function<std::string()>& missing);

/// Returns what the GPU engine lacks to train the network or, with its batch norms folded, to count
/// its votes; empty if nothing. Names the stage that it cannot compute.
std::string missing_for_engine(const Network& network);

/// Returns the bytes of the selected GPU's memory that all processes use; 0 without a GPU.
int64_t gpu_bytes_in_use();

/// Sets which of several GPUs this process uses: `number` modulo how many there are. Must be called
/// once, before other threads start.
void choose_gpu(int number);

/// Makes the GPU of choose_gpu() the current one of the calling thread.
void select_gpu();

}  // namespace fedsmooth
