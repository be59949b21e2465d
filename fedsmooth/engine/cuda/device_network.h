// What a wave of clients needs of a network on the GPU, whatever its kernels: where weights and
// images go, and passes for many clients at once, each with weights of its own.
#pragma once

#include <memory>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/cuda/graph.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/engine/cuda/launches.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Vectors of GpuGraph::size, one for each client.
struct StackedWeights {
  float* weights = nullptr;
  void* working = nullptr;  // in bfloat16, where passes multiply these; null: not wanted
  float* velocity = nullptr;
  const float* global = nullptr;  // those that the round began with, for FedProx; null: without
};

enum class PassMode { kAnswers, kTraining };  // see Passes::forward()

/// Maps, and the launches that fill them.
class WavePasses {
 public:
  virtual ~WavePasses() = default;

  virtual void* input() const = 0;  // the first map, to be filled
  virtual float* logits() const = 0;
  virtual void* output_gradient() const = 0;  // to be filled, in this precision
  virtual Precision output_precision() const = 0;
  virtual const void* input_gradient() const = 0;

  /// Runs the forward pass from input() to logits().
  virtual void run(const StackedWeights& weights, PassMode mode, Launches& launches) = 0;
  /// The same from a wave's images, in the maps' precision; `images.out` is input(), which need not
  /// be filled where no step() follows.
  virtual void run_images(Precision precision, const WaveShape& shape, const InputMap& images,
                          const StackedWeights& weights, PassMode mode, Launches& launches);
  /// From output_gradient() to input_gradient(), after a pass as the network answers.
  virtual void differentiate_images(const StackedWeights& weights, Launches& launches) = 0;
  /// From output_gradient() to a step of SGD, after a pass as the network trains.
  virtual void step(const StackedWeights& weights, const ClientSettings* settings,
                    Launches& launches) = 0;
};

/// A network's graph and the tables of it that kernels of every family read.
struct DeviceNetwork {
  DeviceNetwork(GpuGraph lowered, MapLayout (*layout_of)(int64_t rows, int64_t pixels));
  virtual ~DeviceNetwork() = default;

  GpuGraph graph;
  MapLayout (*layout)(int64_t rows, int64_t pixels);  // of the family's maps
  int row_multiple = 1;                               // rows of a client's maps are filled up to
  DeviceArray<int16_t> source;                        // as in FirstMap
  DeviceArray<float> mean, scale;
  DeviceArray<int> positions;    // of each weight in a client's vector
  bool working_weights = false;  // whether passes want StackedWeights::working

  int padded_classes() const { return graph.head().out.channels; }  // as logits are stored
  /// Whether it answers otherwise than it trains.
  bool trains_otherwise() const;
  /// The first map of clients with `rows` rows each.
  FirstMap first_map(int rows) const;
  int rows_for(int rows) const { return (rows + row_multiple - 1) / row_multiple * row_multiple; }
  /// Without `gradients` they only run as the network answers.
  virtual std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                                  bool gradients) const = 0;
};

/// Vectors of `clients` clients that get the same weights; null: not wanted.
struct ClientVectors {
  int clients = 1;
  float *weights = nullptr, *velocity = nullptr;  // velocity: zeros
  void* working = nullptr;
  float* global = nullptr;
};

/// Fills them with the values of a network's weights. `vector`, of its size, is scratch.
void spread_weights(const DeviceNetwork& network, const DeviceArray<float>& values,
                    const DeviceArray<float>& vector, const ClientVectors& to, cudaStream_t stream);

/// Why the GPU engine cannot run a network, with the stage's name; empty if it can.
std::string network_refusal(const Network& network);

/// For a network that is not refused.
std::unique_ptr<DeviceNetwork> device_network(const Network& network);

}  // namespace fedsmooth
