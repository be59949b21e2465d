// Clients that train side by side on the GPU.
#pragma once

#include <memory>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/wave/batched_noises.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_scores.h"
#include "fedsmooth/engine/cuda/pair_network.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

/// Clients [first, first + count) of a round, side by side in a wave, and where their results go.
struct WavePart {
  const Round& round;
  size_t first, count;
  RoundResult& result;
};

/// One wave's clients: all that they hold on the device, and the graph of their local step.
class Wave {
 public:
  enum class Use { kTraining, kCounted };  // counted: nothing but its memory, see bytes()

  Wave(const LocalTask& task, const DeviceNetwork& device, const DeviceData& data,
       Precision precision, int clients, Use use = Use::kTraining);
  ~Wave();
  Wave(const Wave&) = delete;
  Wave& operator=(const Wave&) = delete;

  int clients() const { return shape_.clients; }
  /// Returns whether the captured step is the task's. Numbers that it reads from the device may
  /// differ.
  bool fits(const LocalTask& task) const { return step_of(task) == step_of(task_); }

  /// Trains clients that fit, at most clients() of them.
  void run(const std::vector<WavePart>& parts);

  /// One local step of these clients, by what it is spent on.
  std::map<std::string, PhaseCost> measure_step(const std::vector<WavePart>& parts);

  /// The memory on the GPU that a wave takes.
  static int64_t bytes(const LocalTask& task, const DeviceNetwork& device, const DeviceData& data,
                       Precision precision, int clients);

 private:
  bool attacked() const { return uses_attack(task_) && task_.attack.epsilon > 0; }
  BatchedExamples examples() const { return objective_of(task_.method).batched->examples; }
  const float* noise() const { return noise_.data(); }  // null: none is added
  /// The noises of a step's noisy copies.
  const float* hard_noise() const { return moved_.data() == nullptr ? noise() : moved_.data(); }
  /// The passes of an ascent: fewer rows than a step's examples may have.
  WavePasses& ascent() const { return ascent_ ? *ascent_ : *passes_; }
  /// Whether the network as it answers has to be asked once more for what the attack achieved.
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
  WaveShape shape_;   // of the noises
  WaveShape scored_;  // of a step's examples
  Launches launches_;
  std::unique_ptr<WavePasses> passes_;
  std::unique_ptr<WavePasses> ascent_;  // if its rows are not those of the examples
  cudaGraphExec_t first_graph_ = nullptr, graph_ = nullptr;  // of the first step, of the others

  DeviceArray<ClientSettings> settings_;
  DeviceArray<float> rates_;  // [client, step], if the learning rate falls within a round
  DeviceArray<uint64_t> augment_keys_;
  DeviceArray<int> chosen_, step_, y_, usable_;
  DeviceArray<float> x_, x_adv_, noise_, probability_, baseline_;
  DeviceArray<float> moved_;            // the noises as NoiseAscent moves them, if it does
  DeviceArray<float> targets_, draws_;  // of cat-rs: the teacher's votes, and a number an image
  DeviceArray<uint8_t> wrong_, flips_;
  DeviceArray<float> before_, after_, perturbation_;
  DeviceArray<ScoreWeights<float>> score_weights_;
  DeviceArray<float> score_room_, mix_, offsets_;
  DeviceArray<MixSettings> mixing_;
  DeviceArray<Terms> terms_;
  DeviceArray<double> shares_;
  DeviceArray<float> global_, vector_, weights_, velocity_;
  DeviceArray<uint8_t> working_;       // weights in bfloat16, if products are
  DeviceArray<float> global_of_each_;  // [client], for FedProx alone
  int64_t statistics_ = 0;             // running statistics among the weights
  DeviceArray<int> sum_positions_;     // of the trained weights, then of those, for a sum
  DeviceArray<long long> sums_, sum_;
  HostArray<float> values_;
  HostArray<long long> host_sum_;
};

}  // namespace fedsmooth
