// The interface of a network on the GPU, for every kernel family: where weights and images are
// placed, and passes for many clients at once, each with weights of its own.
#pragma once

#include <memory>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/cuda/graph.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_dropout.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/engine/cuda/launches.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// The clients' weights on the device: vectors of GpuGraph::size, one client after another.
struct StackedWeights {
  float* weights = nullptr;
  void* working = nullptr;  // weights in bfloat16 if passes read these, else null
  float* velocity = nullptr;
  const float* global = nullptr;  // weights at the round's beginning, for FedProx; null: without it
};

enum class PassMode { kAnswers, kTraining };  // evaluation or training mode, see Passes::forward()

/// Passes of one network for many clients. It owns the maps on the device. Functions enqueue
/// launches on the stream of `launches` and do not wait. One thread and one stream at a time may
/// use it, and only step() may change the weights between two calls, unless forget_weights()
/// follows.
class WavePasses {
 public:
  virtual ~WavePasses() = default;

  virtual void* input() const = 0;  // the first map; the caller fills it before run()
  virtual float* logits() const = 0;
  virtual void* output_gradient() const = 0;  // the caller fills it, in output_precision()
  virtual Precision output_precision() const = 0;
  virtual const void* input_gradient() const = 0;

  /// Sets the random streams of dropouts for the following passes in mode kTraining and their
  /// step(). Networks without dropout do not need them. The pointers must outlive the launches.
  virtual void set_dropout(const DropoutDraws& /*draws*/) {}
  /// Tells that other passes of the same weights have changed these since the last call.
  virtual void forget_weights() {}
  /// Runs the forward pass from input() to logits().
  virtual void run(const StackedWeights& weights, PassMode mode, Launches& launches) = 0;
  /// Runs the forward pass from a wave's images to logits(). `precision` is that of the maps, and
  /// `images.out` must be input(). In mode kAnswers the pass may leave input() unfilled.
  virtual void run_images(Precision precision, const WaveShape& shape, const InputMap& images,
                          const StackedWeights& weights, PassMode mode, Launches& launches);
  /// Computes input_gradient() from output_gradient(). The last pass must have been in mode
  /// kAnswers.
  virtual void differentiate_images(const StackedWeights& weights, Launches& launches) = 0;
  /// Computes the weights' gradients from output_gradient(), and applies a step of SGD with
  /// `settings` [client], which are on the device. The last pass must have been in mode kTraining.
  virtual void step(const StackedWeights& weights, const ClientSettings* settings,
                    Launches& launches) = 0;
};

/// A network's graph, and the tables on the device that kernels of every family read.
struct DeviceNetwork {
  DeviceNetwork(GpuGraph lowered, MapLayout (*layout_of)(int64_t rows, int64_t pixels));
  virtual ~DeviceNetwork() = default;

  GpuGraph graph;
  MapLayout (*layout)(int64_t rows, int64_t pixels);  // of the family's maps
  int row_multiple = 1;                               // the rows of a map are a multiple of this
  DeviceArray<int16_t> source;                        // see FirstMap
  DeviceArray<float> mean, scale;                     // see FirstMap
  DeviceArray<int> positions;                         // see GpuGraph
  bool working_weights = false;  // passes in bfloat16 read StackedWeights::working

  /// Returns the number of logits that are stored for a row.
  int padded_classes() const { return graph.head().out.channels; }
  /// Returns whether passes in mode kTraining differ from those in mode kAnswers, because the
  /// network has a batch norm or a dropout.
  bool trains_otherwise() const;
  /// Returns the description of map 0 for clients with `rows` rows each. It points into this
  /// object.
  FirstMap first_map(int rows) const;
  /// Returns `rows`, rounded up to a multiple of row_multiple.
  int rows_for(int rows) const { return (rows + row_multiple - 1) / row_multiple * row_multiple; }
  /// Makes passes for `clients` clients with maps of `rows` rows each, a multiple of row_multiple,
  /// on the current GPU. This object must outlive them. Without `gradients` only run() and
  /// run_images() in mode kAnswers may be called.
  virtual std::unique_ptr<WavePasses> make_passes(Precision precision, int clients, int rows,
                                                  bool gradients) const = 0;
};

/// The vectors of `clients` clients on the device, which all get the same weights.
struct ClientVectors {
  int clients = 1;
  float *weights = nullptr, *velocity = nullptr;  // velocity is set to zero
  void* working = nullptr;                        // null: not wanted
  float* global = nullptr;                        // null: not wanted
};

/// Enqueues a kernel that fills the clients' vectors with `values`, a network's weights in the
/// order of parameters(). `vector`, of GpuGraph::size, is scratch space.
void spread_weights(const DeviceNetwork& network, const DeviceArray<float>& values,
                    const DeviceArray<float>& vector, const ClientVectors& to, cudaStream_t stream);

/// Returns why the GPU engine cannot run a network, with the stage's name; empty if it can.
std::string network_refusal(const Network& network);

/// Lowers a network that network_refusal() accepts: to family kPairs if that can run it, else to
/// kRows. Its tables are on the current GPU.
std::unique_ptr<DeviceNetwork> device_network(const Network& network);

}  // namespace fedsmooth
