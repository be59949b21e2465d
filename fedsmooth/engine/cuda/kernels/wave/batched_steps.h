// The parts of a local step outside the network, on the GPU, for all clients of a wave: images,
// noise and the attack. Arithmetic follows the serial path (federated/client.cpp,
// attack/attack_smoothed.cpp) operation by operation. Functions enqueue kernels on the stream and
// return the launch's status; pointers are to device memory.
#pragma once

#include <cuda_runtime_api.h>

#include "fedsmooth/engine/cuda/kernels/wave/client_settings.h"
#include "fedsmooth/engine/cuda/kernels/wave/first_map.h"

namespace fedsmooth {

/// Sizes that all clients of a wave share. `rows` is the number of rows of the maps: batch *
/// noises, filled up as the kernels need it.
struct WaveShape {
  int clients = 0, batch = 0, noises = 0, rows = 0;
  int channels = 0, height = 0, width = 0;  // of an image
  int image_size = 0;                       // their product
  int classes = 0, padded_classes = 0;
};

/// Arguments of load_images().
struct ImageLoad {
  const uint8_t* images = nullptr;  // [image of the data set, channel, y, x]
  const int64_t* labels = nullptr;
  const int* chosen = nullptr;  // [client, steps, batch]: indices of images
  int steps = 0;
  bool augment = false;
  const uint64_t* augment_keys = nullptr;    // [client]
  const ClientSettings* settings = nullptr;  // [client]
  const uint8_t* flips = nullptr;            // [client]: 1 if it trains on K - 1 - y for y
  const int* step = nullptr;                 // number of the current step
  float *x = nullptr, *x_adv = nullptr;      // [client, batch, image]
  int* y = nullptr;                          // [client, batch]
};
/// Writes the current step's images, in [0, 1], to x and x_adv, and their labels to y. Images are
/// randomly cropped and flipped if `augment` is set.
cudaError_t load_images(const WaveShape& shape, const ImageLoad& load, cudaStream_t stream);

/// Draws `noise` [client, batch * noises, image] of the current step: the numbers of fill_normal(),
/// times the client's sigma.
cudaError_t draw_noise(const WaveShape& shape, const ClientSettings* settings, const int* step,
                       float* noise, cudaStream_t stream);

/// Copies of images x [client, batch, image], each with its noise [client, batch * copies, image].
/// `noise` null: without noise.
struct ExampleCopies {
  const float *x = nullptr, *noise = nullptr;
  int copies = 0;
};

/// The examples of a network's first map. An image's rows are its copies of kind `first`, then
/// those of kind `second`.
struct InputMap {
  ExampleCopies first, second;
  FirstMap map;
  void* out = nullptr;  // the first map
};
/// Writes the normalised examples to the first map. Rows without an example are zero.
cudaError_t make_input(Precision precision, const WaveShape& shape, const InputMap& map,
                       cudaStream_t stream);

/// Adds offsets [client, padded class] to logits [client, row, padded class].
cudaError_t shift_logits(const WaveShape& shape, const float* offsets, float* logits,
                         cudaStream_t stream);

/// Arguments of take_attack_loss().
struct AttackLoss {
  bool gradient = false;
  const float* logits = nullptr;  // [client, row, padded class]
  const int* y = nullptr;         // [client, batch]
  float* probability = nullptr;   // [client, row]
  void* out = nullptr;            // [client, row, padded class], in `precision`
  const int* step = nullptr;      // number of the current step
  float* seen = nullptr;  // [client, batch]: mean probability, written in step 0; null: not wanted
};
/// Writes the probability of each row's true class. If `gradient` is set, also writes to `out` the
/// gradient of the attack's J with respect to the logits.
cudaError_t take_attack_loss(Precision precision, const WaveShape& shape, const AttackLoss& loss,
                             cudaStream_t stream);

/// Arguments of step_attack().
struct AttackStep {
  const float* x = nullptr;            // [client, batch, image]
  float* x_adv = nullptr;              // [client, batch, image]
  const void* map_gradient = nullptr;  // of the first map; null: gradients by one or two points
  FirstMap map;
  const float *noise = nullptr, *probability = nullptr;
  const float* baseline = nullptr;  // [client, row]: probability at x itself; null: one point
  bool normalize = true;
  const ClientSettings* settings = nullptr;
  const int* step = nullptr;      // number of the current step
  float* perturbation = nullptr;  // [client, batch]: |x_adv - x|, written in step 0
};
/// Moves x_adv by one step of the ascent. The gradient is that of the first map or, without it, is
/// estimated from noise and probabilities.
cudaError_t step_attack(Precision precision, const WaveShape& shape, const AttackStep& attack,
                        cudaStream_t stream);

/// What SmoothMix mixes by, for one client.
struct MixSettings {
  uint64_t key = 0;      // of the stream of `mix`
  float first_step = 0;  // largest distance that take_first_step() moves x
};
/// Arguments of take_first_step() and mix_images().
struct MixStep {
  const ClientSettings* settings = nullptr;
  const MixSettings* mixing = nullptr;   // [client]
  const int* step = nullptr;             // number of the current step
  float *x = nullptr, *x_adv = nullptr;  // [client, batch, image]
  float* mix = nullptr;                  // [client, batch]: written by mix_images()
};
/// After the first step of SmoothMix's ascent: moves x towards x_adv by at most `first_step`.
cudaError_t take_first_step(const WaveShape& shape, const MixStep& step, cudaStream_t stream);
/// After the last step of SmoothMix's ascent: draws mix in [0, 1/2) for each image, and replaces
/// x_adv by (1 - mix) x + mix x_adv.
cudaError_t mix_images(const WaveShape& shape, const MixStep& step, cudaStream_t stream);

/// Returns success if this build has kernels for the current GPU.
cudaError_t find_kernels();

/// Adds one to the number at `step`.
cudaError_t next_step(int* step, cudaStream_t stream);

/// Sets every client's learning rate to that of the current step in rates [client, steps].
cudaError_t set_rates(int clients, int steps, const float* rates, const int* step,
                      ClientSettings* settings, cudaStream_t stream);

}  // namespace fedsmooth
