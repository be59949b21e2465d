// A local step of all clients, as launches on the wave's stream.
#include "fedsmooth/engine/cuda/wave.h"

namespace fedsmooth {

// SmoothAdv(theta, b) and the SGD steps over its list, for all clients.
void Wave::enqueue_step() {
  ImageLoad load;
  load.images = data_.images.data();
  load.labels = data_.labels.data();
  load.chosen = chosen_.data();
  load.steps = static_cast<int>(task_.local.steps);
  load.augment = task_.augment;
  load.augment_keys = augment_keys_.data();
  load.settings = settings_.data();
  load.step = step_.data();
  load.x = x_.data();
  load.x_adv = x_adv_.data();
  load.y = y_.data();
  launches_.add("images", load_images(shape_, load, launches_.stream()));
  if (noise() != nullptr) {
    launches_.add("noise", draw_noise(shape_, settings_.data(), step_.data(), noise_.data(),
                                      launches_.stream()));
  }
  if (attacked()) enqueue_attack();
  for (int64_t pass = 0; pass < task_.local.passes; ++pass) {
    enqueue_forward(noise());
    enqueue_score(pass == 0 ? after_.data() : nullptr);
    passes_.update(stacked(), settings_.data(), launches_);
  }
  launches_.add("rest", next_step(step_.data(), launches_.stream()));
}

void Wave::enqueue_attack() {
  const bool stochastic = task_.attack.estimator == Estimator::kStochastic;
  const bool two_point = task_.attack.estimator == Estimator::kTwoPoint;
  const BatchedMap& map = device_.plan.stages.front().in;
  AttackStep attack;
  attack.x = x_.data();
  attack.x_adv = x_adv_.data();
  attack.map_gradient = stochastic ? passes_.input_gradient() : nullptr;
  attack.source = device_.source.data();
  attack.pixels = map.pixels();
  attack.map_channels = map.channels;
  attack.scale = device_.scale.data();
  attack.noise = noise_.data();
  attack.probability = probability_.data();
  attack.baseline = two_point ? baseline_.data() : nullptr;
  attack.normalize = task_.attack.normalize;
  attack.settings = settings_.data();
  attack.step = step_.data();
  attack.perturbation = perturbation_.data();
  for (int64_t step = 0; step < task_.attack.steps; ++step) {
    if (two_point) {
      enqueue_forward(nullptr);
      enqueue_attack_loss(/*gradient=*/false, 1, baseline_.data(), nullptr);
    }
    enqueue_forward(noise());
    enqueue_attack_loss(/*gradient=*/stochastic, shape_.noises, probability_.data(),
                        step == 0 ? before_.data() : nullptr);
    if (stochastic) passes_.differentiate_input(stacked(), launches_);
    launches_.add("attack", step_attack(precision_, shape_, attack, launches_.stream()));
  }
}

void Wave::enqueue_forward(const float* noise) {
  const BatchedMap& map = device_.plan.stages.front().in;
  InputMap input;
  input.x = x_adv_.data();
  input.noise = noise;
  input.source = device_.source.data();
  input.mean = device_.mean.data();
  input.scale = device_.scale.data();
  input.pixels = map.pixels();
  input.map_channels = map.channels;
  input.out = passes_.input();
  launches_.add("images", make_input(precision_, shape_, input, launches_.stream()));
  passes_.forward(stacked(), launches_);
}

void Wave::enqueue_attack_loss(bool gradient, int noises, float* probability, float* seen) {
  WaveShape shape = shape_;
  shape.noises = noises;
  AttackLoss loss;
  loss.gradient = gradient;
  loss.logits = passes_.logits();
  loss.y = y_.data();
  loss.probability = probability;
  loss.out = passes_.output_gradient();
  loss.step = step_.data();
  loss.seen = seen;
  launches_.add("rest", take_attack_loss(precision_, shape, loss, launches_.stream()));
}

void Wave::enqueue_score(float* seen) {
  ScoreStep score;
  score.kind = *objective_of(task_.method).on_gpu;
  score.logits = passes_.logits();
  score.y = y_.data();
  score.weights = score_weights_.data();
  score.room = score_room_.data();
  score.out = passes_.output_gradient();
  score.terms = terms_.data();
  score.step = step_.data();
  score.seen = seen;
  launches_.add("rest", take_score(precision_, shape_, score, launches_.stream()));
}

}  // namespace fedsmooth
