// Loads a wave's clients: weights, settings and the choice of their images.
#include <algorithm>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/wave.h"
#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/objectives/smooth_mix.h"

namespace fedsmooth {
namespace {

Key key_of(const Round& round, Purpose purpose) {
  return make_key(round.task.seed, purpose,
                  static_cast<uint64_t>(round.task.stream_round(round.t)));
}

ClientSettings settings_of(const Round& round, int64_t k) {
  const LocalTask& task = round.task;
  const bool mixes = objective_of(task.method).batched->examples == BatchedExamples::kMixed;
  const AttackOptions ascent = mixes ? mix_ascent(task) : task.attack;
  const NoiseAscent of_noise = noise_ascent(task);
  return {key_of(round, Purpose::kTraining).value,
          static_cast<uint32_t>(k),
          static_cast<float>(task.smoothing.sigma),
          static_cast<float>(ascent.epsilon),
          static_cast<float>(of_noise.steps > 0 ? of_noise.step_size : step_size(ascent)),
          static_cast<float>(task.local.learning_rate),
          static_cast<float>(task.local.momentum),
          static_cast<float>(task.local.weight_decay),
          static_cast<float>(task.local.mu),
          static_cast<uint32_t>(task.first_step(round.t))};
}

}  // namespace

void Wave::load_clients(const std::vector<WavePart>& parts) {
  const int64_t taken = task_.local.steps * task_.local.batch;
  std::vector<ClientSettings> settings(shape_.clients);
  std::vector<ScoreWeights<float>> weights(shape_.clients);
  std::vector<MixSettings> mixing(shape_.clients);
  std::vector<float> rates(rates_.size(), 0.0f);
  std::vector<uint64_t> keys(shape_.clients, 0), dropout_keys(shape_.clients, 0);
  std::vector<float> offsets(offsets_.size(), 0.0f);
  std::vector<int> chosen(chosen_.size(), 0);
  std::vector<float> targets(targets_.size(), 0.0f);
  std::vector<uint8_t> flips(shape_.clients, 0);
  std::vector<double> shares(shape_.clients, 0.0);
  int64_t slot = 0;
  for (const auto& [round, first, count, result] : parts) {
    const LocalTask& task = round.task;
    const auto [lambda, eta, sigma] = score_weights(task);
    const Key mix = key_of(round, Purpose::kObjective);
    const Key augment = key_of(round, Purpose::kAugment);
    const Key dropout = key_of(round, Purpose::kDropout);
    for (size_t i = first; i < first + count; ++i, ++slot) {
      const int64_t k = round.cohort.clients[i];
      settings[slot] = settings_of(round, k);
      weights[slot] = {static_cast<float>(lambda), static_cast<float>(eta),
                       static_cast<float>(sigma)};
      mixing[slot] = {mix.value, static_cast<float>(mix_first_step(task))};
      for (int64_t j = 0; !rates.empty() && j < task.local.steps; ++j) {
        rates[slot * task.local.steps + j] = static_cast<float>(task.local.rate_of_step(j));
      }
      keys[slot] = augment.value;
      dropout_keys[slot] = dropout.value;
      if (task.local.calibrate) {
        const std::vector<float> shift = label_offsets(task, k, round.cohort.images[i]);
        std::copy(shift.begin(), shift.end(), offsets.begin() + slot * shape_.padded_classes);
      }
      const auto order = choose_images(task, round.cohort.images[i], k, round.t);
      std::copy(order.begin(), order.end(), chosen.begin() + slot * taken);
      for (int64_t j = 0; !targets.empty() && j < taken; ++j) {
        std::copy_n(task.teacher.floats() + order[j] * shape_.classes, shape_.classes,
                    targets.begin() + (slot * taken + j) * shape_.classes);
      }
      flips[slot] = flips_labels(task, k);
      shares[slot] = round.cohort.share(i) * FixedPointSum::kUnit;
    }
  }
  settings_.upload(settings.data(), settings_.size(), launches_.stream());
  score_weights_.upload(weights.data(), score_weights_.size(), launches_.stream());
  mixing_.upload(mixing.data(), mixing_.size(), launches_.stream());
  rates_.upload(rates.data(), rates_.size(), launches_.stream());
  offsets_.upload(offsets.data(), offsets_.size(), launches_.stream());
  augment_keys_.upload(keys.data(), augment_keys_.size(), launches_.stream());
  dropout_keys_.upload(dropout_keys.data(), dropout_keys_.size(), launches_.stream());
  chosen_.upload(chosen.data(), chosen_.size(), launches_.stream());
  targets_.upload(targets.data(), targets_.size(), launches_.stream());
  flips_.upload(flips.data(), flips_.size(), launches_.stream());
  shares_.upload(shares.data(), shares_.size(), launches_.stream());
  step_.clear(launches_.stream());
  terms_.clear(launches_.stream());
  const std::vector<int> usable(shape_.clients, 1);
  usable_.upload(usable.data(), usable_.size(), launches_.stream());
  slot = 0;
  for (const WavePart& part : parts) {
    // Unused slots get the last weights; they train, but their results are ignored.
    const bool last = &part == &parts.back();
    const auto count = static_cast<int64_t>(part.count);
    load_weights(part.round.global, slot, last ? shape_.clients - slot : count);
    if (part.round.velocity != nullptr) load_velocity(*part.round.velocity, slot);
    slot += count;
  }
}

// Copies weights to global_ through values_, which may be written again once the stream is empty.
void Wave::upload(const Weights& weights) {
  float* value = values_.data();
  for (const Array& w : weights) value = std::copy_n(w.floats(), w.count(), value);
  global_.upload(values_.data(), global_.size(), launches_.stream());
}

// Gives clients [slot, slot + clients) the same weights, and waits.
void Wave::load_weights(const Weights& global, int64_t slot, int64_t clients) {
  const int64_t begin = slot * device_.graph.size;
  upload(global);
  const ClientVectors to = {
      static_cast<int>(clients), weights_.data() + begin, velocity_.data() + begin,
      working_.data() == nullptr ? nullptr : working_.data() + begin * 2,
      global_of_each_.data() == nullptr ? nullptr : global_of_each_.data() + begin};
  spread_weights(device_, global_, vector_, to, launches_.stream());
  check_cuda(cudaStreamSynchronize(launches_.stream()), "load_weights");
}

// Loads the momentum of a continuous task's one client, and waits.
void Wave::load_velocity(const Weights& velocity, int64_t slot) {
  upload(velocity);
  check_cuda(place_values(global_.data(), device_.positions.data(), global_.size(),
                          velocity_.data() + slot * device_.graph.size, launches_.stream()),
             "place_values");
  check_cuda(cudaStreamSynchronize(launches_.stream()), "load_velocity");
}

}  // namespace fedsmooth
