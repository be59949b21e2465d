// The local training of a wave: clients that train side by side on the GPU.
#pragma once

#include <memory>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/wave/batched_noises.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_scores.h"
#include "fedsmooth/engine/cuda/pair_network.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

/// Clients [first, first + count) of a round that are part of a wave, and the result to which they
/// are added. References must outlive it.
struct WavePart {
  const Round& round;
  size_t first, count;
  RoundResult& result;
};

/// Owns the memory of a wave's clients on the device, and the captured graph of their local step.
/// For one thread at a time; `device` and `data` must outlive it.
class Wave {
 public:
  enum class Use { kTraining, kCounted };  // kCounted: only its memory is counted, see bytes()

  /// Allocates memory for `clients` clients with tasks like `task`, and captures their local step.
  /// Throws OutOfDeviceMemory.
  Wave(const LocalTask& task, const DeviceNetwork& device, const DeviceData& data,
       Precision precision, int clients, Use use = Use::kTraining);
  ~Wave();
  Wave(const Wave&) = delete;
  Wave& operator=(const Wave&) = delete;

  int clients() const { return shape_.clients; }
  /// Returns whether the captured step is the task's. Numbers that the step reads from the device
  /// may differ.
  bool fits(const LocalTask& task) const { return step_of(task) == step_of(task_); }

  /// Trains the clients of `parts`, at most clients() with tasks that fit(), waits for them, and
  /// adds their weights and telemetry to the parts' results.
  void run(const std::vector<WavePart>& parts);

  /// Runs a local step of these clients and returns the cost of each phase.
  std::map<std::string, PhaseCost> measure_step(const std::vector<WavePart>& parts);

  /// Returns the memory on the GPU that such a wave needs, in bytes.
  static int64_t bytes(const LocalTask& task, const DeviceNetwork& device, const DeviceData& data,
                       Precision precision, int clients);

 private:
  bool attacked() const { return uses_attack(task_) && task_.attack.epsilon > 0; }
  BatchedExamples examples() const { return objective_of(task_.method).batched->examples; }
  const float* noise() const { return noise_.data(); }  // null: no noise is added
  /// Returns the noises of a step's noisy copies, moved if the objective moves them.
  const float* hard_noise() const { return moved_.data() == nullptr ? noise() : moved_.data(); }
  /// Returns the passes of an ascent, which may have fewer rows than a step's examples.
  WavePasses& ascent() const { return ascent_ ? *ascent_ : *passes_; }
  /// Returns whether the attack's success needs a pass of its own in mode kAnswers.
  bool records_apart() const { return attacked() && device_.trains_otherwise(); }

  cudaGraphExec_t capture(bool first);
  void enqueue_step(bool first);
  void enqueue_attack(int64_t steps);
  void enqueue_mixing();
  void enqueue_noise_ascent();
  InputMap input_of(const WavePasses& passes, const WaveShape& shape) const;
  void enqueue_pass(WavePasses& passes, PassMode mode, const WaveShape& shape,
                    const InputMap& input);
  void enqueue_ascent_forward(const float* noise);
  void enqueue_examples_forward();
  void enqueue_attack_loss(bool gradient, int noises, float* probability, float* seen);
  void enqueue_score(float* seen);
  void load_clients(const std::vector<WavePart>& parts);
  void upload(const Weights& weights);
  void load_weights(const Weights& global, int64_t slot, int64_t clients);
  void load_velocity(const Weights& velocity, int64_t slot);
  Weights take(const DeviceArray<float>& vectors, int64_t slot, const Weights& like);
  void add_results(const std::vector<WavePart>& parts);
  std::vector<int> find_usable(const WavePart& part, int64_t slot);
  void add_sum(const WavePart& part, int64_t slot, const std::vector<int>& usable);
  void add_each(const WavePart& part, int64_t slot, const std::vector<int>& usable,
                const std::vector<Telemetry>& of_each);

  StackedWeights stacked() const {
    return {weights_.data(), working_.data(), velocity_.data(), global_of_each_.data()};
  }

  LocalTask task_;
  const DeviceNetwork& device_;
  const DeviceData& data_;
  Precision precision_;
  WaveShape shape_;   // with one row for each noise
  WaveShape scored_;  // with one row for each example of a step
  Launches launches_;
  std::unique_ptr<WavePasses> passes_;
  std::unique_ptr<WavePasses> ascent_;                       // null: an ascent uses passes_
  cudaGraphExec_t first_graph_ = nullptr, graph_ = nullptr;  // first step (if it differs), others

  DeviceArray<ClientSettings> settings_;
  DeviceArray<float> rates_;  // [client, step], if the learning rate falls within a round
  DeviceArray<uint64_t> augment_keys_, dropout_keys_;
  DeviceArray<int> chosen_, step_, y_, usable_;
  DeviceArray<float> x_, x_adv_, noise_, probability_, baseline_;
  DeviceArray<float> moved_;            // noises that NoiseAscent has moved; empty: it does not
  DeviceArray<float> targets_, draws_;  // for cat-rs: the teacher's votes, a number for each image
  DeviceArray<uint8_t> wrong_, flips_;
  DeviceArray<float> before_, after_, perturbation_;
  DeviceArray<ScoreWeights<float>> score_weights_;
  DeviceArray<float> score_room_, mix_, offsets_;
  DeviceArray<MixSettings> mixing_;
  DeviceArray<Terms> terms_;
  DeviceArray<double> shares_;
  DeviceArray<float> global_, vector_, weights_, velocity_;
  DeviceArray<uint8_t> working_;       // weights in bfloat16, if passes multiply these
  DeviceArray<float> global_of_each_;  // [client, GpuGraph::size], only for FedProx
  int64_t statistics_ = 0;             // number of running statistics among the weights
  DeviceArray<int> sum_positions_;     // positions of trained weights, then of running statistics
  DeviceArray<long long> sums_, sum_;
  HostArray<float> values_;
  HostArray<long long> host_sum_;
};

}  // namespace fedsmooth
