// The settings of a wave that every kernel family reads: the precision of maps, and numbers for
// each client.
#pragma once

#include <cstdint>

namespace fedsmooth {

enum class Precision {
  kBfloat16,  // products of bfloat16, sums and weights in float32
  kFloat32,
};

/// Numbers that may differ between the clients of a wave.
struct ClientSettings {
  uint64_t key = 0;     // of the noise's streams
  uint32_t client = 0;  // number of the client in its streams
  float sigma = 0, epsilon = 0, step_size = 0;
  float learning_rate = 0, momentum = 0, weight_decay = 0;
  float mu = 0;             // FedProx; 0: without
  uint32_t first_step = 0;  // number of the wave's first step in the client's streams
};

}  // namespace fedsmooth
