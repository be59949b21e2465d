// What a local step does between the products of batched_product.h, on the GPU, for all clients of
// a wave: images and noise, the attack. Arithmetic follows the serial path
// (federated/client.cpp, attack/attack_smoothed.cpp) operation by operation.
#pragma once

#include <cuda_runtime_api.h>

#include "fedsmooth/engine/cuda/kernels/wave/client_settings.h"
#include "fedsmooth/engine/cuda/kernels/wave/first_map.h"

namespace fedsmooth {

/// Sizes that all clients of a wave share. Rows are those of the maps: batch * noises, filled up to
/// a multiple of 64.
struct WaveShape {
  int clients = 0, batch = 0, noises = 0, rows = 0;
  int channels = 0, height = 0, width = 0;  // of an image
  int image_size = 0;                       // their product
  int classes = 0, padded_classes = 0;
};

/// x and x_adv [client, batch, image] in [0, 1]: the images `chosen` [client, steps, batch] of this
/// step, cropped and flipped if asked. `step` is a number on the device.
struct ImageLoad {
  const uint8_t* images = nullptr;
  const int64_t* labels = nullptr;
  const int* chosen = nullptr;
  int steps = 0;
  bool augment = false;
  const uint64_t* augment_keys = nullptr;  // of the clients
  const ClientSettings* settings = nullptr;
  const uint8_t* flips = nullptr;  // of the clients: whether label y is taken for K - 1 - y
  const int* step = nullptr;
  float *x = nullptr, *x_adv = nullptr;
  int* y = nullptr;  // [client, batch]
};
cudaError_t load_images(const WaveShape& shape, const ImageLoad& load, cudaStream_t stream);

/// noise [client, batch * noises, image], as fill_normal() draws it, times sigma.
cudaError_t draw_noise(const WaveShape& shape, const ClientSettings* settings, const int* step,
                       float* noise, cudaStream_t stream);

/// Copies of images x [client, batch, image] with noise [client, batch * copies, image]; null:
/// without.
struct ExampleCopies {
  const float *x = nullptr, *noise = nullptr;
  int copies = 0;
};

/// The network's first map, filled with normalised images. An image's rows are its copies of the
/// first kind, then those of the second.
struct InputMap {
  ExampleCopies first, second;
  FirstMap map;
  void* out = nullptr;
};
cudaError_t make_input(Precision precision, const WaveShape& shape, const InputMap& map,
                       cudaStream_t stream);

/// Adds offsets [client, padded class] to logits [client, row, padded class].
cudaError_t shift_logits(const WaveShape& shape, const float* offsets, float* logits,
                         cudaStream_t stream);

/// Probabilities of the true class [client, row] and their mean per image; then, if asked, the
/// gradient of the attack's J with respect to the logits.
struct AttackLoss {
  bool gradient = false;
  const float* logits = nullptr;  // [client, row, padded class]
  const int* y = nullptr;
  float* probability = nullptr;
  void* out = nullptr;  // [client, row, padded class]
  const int* step = nullptr;
  float* seen = nullptr;  // [client, batch]: mean probability, written in step 0; null: nowhere
};
cudaError_t take_attack_loss(Precision precision, const WaveShape& shape, const AttackLoss& loss,
                             cudaStream_t stream);

/// One step of the ascent. Gradients come from the input map's gradient, or from the noise and the
/// probabilities.
struct AttackStep {
  const float* x = nullptr;
  float* x_adv = nullptr;
  const void* map_gradient = nullptr;  // null: by one point
  FirstMap map;
  const float *noise = nullptr, *probability = nullptr;
  const float* baseline = nullptr;  // [client, row]: probability at x itself, for two points
  bool normalize = true;
  const ClientSettings* settings = nullptr;
  const int* step = nullptr;
  float* perturbation = nullptr;  // [client, batch]: |x_adv - x|, written in step 0
};
cudaError_t step_attack(Precision precision, const WaveShape& shape, const AttackStep& attack,
                        cudaStream_t stream);

/// SmoothMix, after the first step of its ascent: x moves towards x_adv by at most `first_step`.
/// After the last: x_adv becomes (1 - mix) x + mix x_adv.
struct MixSettings {
  uint64_t key = 0;  // of mix
  float first_step = 0;
};
struct MixStep {
  const ClientSettings* settings = nullptr;
  const MixSettings* mixing = nullptr;  // [client]
  const int* step = nullptr;
  float *x = nullptr, *x_adv = nullptr;
  float* mix = nullptr;  // [client, batch]
};
cudaError_t take_first_step(const WaveShape& shape, const MixStep& step, cudaStream_t stream);
cudaError_t mix_images(const WaveShape& shape, const MixStep& step, cudaStream_t stream);

/// Whether this build has code for the GPU.
cudaError_t find_kernels();

/// The number behind `step` plus one.
cudaError_t next_step(int* step, cudaStream_t stream);

/// Gives every client the learning rate of step *step out of rates [client, steps].
cudaError_t set_rates(int clients, int steps, const float* rates, const int* step,
                      ClientSettings* settings, cudaStream_t stream);

}  // namespace fedsmooth
