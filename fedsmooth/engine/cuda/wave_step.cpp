// Enqueues a local step of all clients on the wave's stream.
#include "fedsmooth/engine/cuda/wave.h"

#include "fedsmooth/federated/objectives/smooth_mix.h"

namespace fedsmooth {

// Enqueues SmoothAdv(theta, b) and the SGD steps over its list.
void Wave::enqueue_step(bool first) {
  ascent().forget_weights();  // they are new: of a round, or of the passes that train
  if (rates_.data() != nullptr) {
    launches_.add("rest",
                  set_rates(shape_.clients, static_cast<int>(task_.local.steps), rates_.data(),
                            step_.data(), settings_.data(), launches_.stream()));
  }
  ImageLoad load;
  load.images = data_.images.data();
  load.labels = data_.labels.data();
  load.chosen = chosen_.data();
  load.steps = static_cast<int>(task_.local.steps);
  load.augment = task_.augment;
  load.augment_keys = augment_keys_.data();
  load.settings = settings_.data();
  load.flips = flips_.data();
  load.step = step_.data();
  load.x = x_.data();
  load.x_adv = x_adv_.data();
  load.y = y_.data();
  launches_.add("images", load_images(shape_, load, launches_.stream()));
  if (noise() != nullptr) {
    launches_.add("noise", draw_noise(shape_, settings_.data(), step_.data(), noise_.data(),
                                      launches_.stream()));
  }
  if (examples() == BatchedExamples::kMixed) {
    enqueue_mixing();
  } else if (attacked()) {
    enqueue_attack(task_.attack.steps);
  }
  if (moved_.data() != nullptr) enqueue_noise_ascent();
  if (first && records_apart()) {
    enqueue_ascent_forward(noise());
    enqueue_attack_loss(/*gradient=*/false, shape_.noises, probability_.data(), after_.data());
  }
  DropoutDraws draws{dropout_keys_.data(), settings_.data(), step_.data()};
  draws.passes = static_cast<int>(task_.local.passes);
  for (int64_t pass = 0; pass < task_.local.passes; ++pass) {
    draws.pass = static_cast<int>(pass);
    passes_->set_dropout(draws);
    enqueue_examples_forward();
    enqueue_score(pass == 0 && !records_apart() ? after_.data() : nullptr);
    passes_->step(stacked(), settings_.data(), launches_);
  }
  launches_.add("rest", next_step(step_.data(), launches_.stream()));
}

// Enqueues SmoothMix's ascent, after which x_adv is the mixed image.
void Wave::enqueue_mixing() {
  MixStep mixing;
  mixing.settings = settings_.data();
  mixing.mixing = mixing_.data();
  mixing.step = step_.data();
  mixing.x = x_.data();
  mixing.x_adv = x_adv_.data();
  mixing.mix = mix_.data();
  enqueue_attack(1);
  launches_.add("attack", take_first_step(shape_, mixing, launches_.stream()));
  enqueue_attack(mix_ascent(task_).steps - 1);
  launches_.add("attack", mix_images(shape_, mixing, launches_.stream()));
}

void Wave::enqueue_noise_ascent() {
  launches_.add("attack",
                cudaMemcpyAsync(moved_.data(), noise_.data(), sizeof(float) * moved_.size(),
                                cudaMemcpyDeviceToDevice, launches_.stream()));
  TargetLoss loss;
  loss.logits = ascent().logits();
  loss.y = y_.data();
  loss.targets = targets_.data();
  loss.steps = static_cast<int>(task_.local.steps);
  loss.step = step_.data();
  loss.out = ascent().output_gradient();
  loss.wrong = wrong_.data();
  NoiseStep step;
  step.kind = noise_ascent(task_).kind;
  step.delta = noise_.data();
  step.moved = moved_.data();
  step.map_gradient = ascent().input_gradient();
  step.map = device_.first_map(shape_.rows);
  step.wrong = wrong_.data();
  step.settings = settings_.data();
  for (int64_t i = 0; i < noise_ascent(task_).steps; ++i) {
    enqueue_ascent_forward(moved_.data());
    launches_.add("rest",
                  take_target_loss(ascent().output_precision(), shape_, loss, launches_.stream()));
    ascent().differentiate_images(stacked(), launches_);
    launches_.add("attack", step_noises(precision_, shape_, step, launches_.stream()));
  }
  if (draws_.data() == nullptr) return;
  launches_.add("noise", draw_uniforms(shape_, settings_.data(), mixing_.data(), step_.data(),
                                       draws_.data(), launches_.stream()));
}

void Wave::enqueue_attack(int64_t steps) {
  const bool mixes = examples() == BatchedExamples::kMixed;
  const bool stochastic = mixes || task_.attack.estimator == Estimator::kStochastic;
  const bool two_point = !mixes && task_.attack.estimator == Estimator::kTwoPoint;
  AttackStep attack;
  attack.x = x_.data();
  attack.x_adv = x_adv_.data();
  attack.map_gradient = stochastic ? ascent().input_gradient() : nullptr;
  attack.map = device_.first_map(shape_.rows);
  attack.noise = noise_.data();
  attack.probability = probability_.data();
  attack.baseline = two_point ? baseline_.data() : nullptr;
  attack.normalize = mixes || task_.attack.normalize;
  attack.settings = settings_.data();
  attack.step = step_.data();
  attack.perturbation = perturbation_.data();
  for (int64_t step = 0; step < steps; ++step) {
    if (two_point) {
      enqueue_ascent_forward(nullptr);
      enqueue_attack_loss(/*gradient=*/false, 1, baseline_.data(), nullptr);
    }
    enqueue_ascent_forward(noise());
    enqueue_attack_loss(/*gradient=*/stochastic, shape_.noises, probability_.data(),
                        step == 0 ? before_.data() : nullptr);
    if (stochastic) ascent().differentiate_images(stacked(), launches_);
    launches_.add("attack", step_attack(precision_, shape_, attack, launches_.stream()));
  }
}

InputMap Wave::input_of(const WavePasses& passes, const WaveShape& shape) const {
  InputMap input;
  input.map = device_.first_map(shape.rows);
  input.out = passes.input();
  return input;
}

// Enqueues a forward pass from images to logits, with the calibration's offsets.
void Wave::enqueue_pass(WavePasses& passes, PassMode mode, const WaveShape& shape,
                        const InputMap& input) {
  passes.run_images(precision_, shape, input, stacked(), mode, launches_);
  if (!task_.local.calibrate) return;
  launches_.add("rest", shift_logits(shape, offsets_.data(), passes.logits(), launches_.stream()));
}

void Wave::enqueue_ascent_forward(const float* noise) {
  InputMap input = input_of(ascent(), shape_);
  input.first = {x_adv_.data(), noise, noise == nullptr ? 1 : shape_.noises};
  enqueue_pass(ascent(), PassMode::kAnswers, shape_, input);
}

void Wave::enqueue_examples_forward() {
  InputMap input = input_of(*passes_, scored_);
  const ExampleCopies noisy = {x_adv_.data(), hard_noise(), shape_.noises};
  switch (examples()) {
    case BatchedExamples::kNoisy:
      input.first = noisy;
      break;
    case BatchedExamples::kAndClean:
      input.first = {x_.data(), nullptr, 1};
      input.second = noisy;
      break;
    case BatchedExamples::kMixed:
    case BatchedExamples::kMoved:
      input.first = {x_.data(), noise(), shape_.noises};
      input.second = noisy;
      break;
  }
  enqueue_pass(*passes_, PassMode::kTraining, scored_, input);
}

void Wave::enqueue_attack_loss(bool gradient, int noises, float* probability, float* seen) {
  WaveShape shape = shape_;
  shape.noises = noises;
  AttackLoss loss;
  loss.gradient = gradient;
  loss.logits = ascent().logits();
  loss.y = y_.data();
  loss.probability = probability;
  loss.out = ascent().output_gradient();
  loss.step = step_.data();
  loss.seen = seen;
  launches_.add("rest",
                take_attack_loss(ascent().output_precision(), shape, loss, launches_.stream()));
}

void Wave::enqueue_score(float* seen) {
  ScoreStep score;
  score.kind = objective_of(task_.method).batched->score;
  score.logits = passes_->logits();
  score.y = y_.data();
  score.weights = score_weights_.data();
  score.mix = mix_.data();
  score.draws = draws_.data();
  score.targets = targets_.data();
  score.steps = static_cast<int>(task_.local.steps);
  score.room = score_room_.data();
  score.out = passes_->output_gradient();
  score.terms = terms_.data();
  score.step = step_.data();
  score.seen = seen;
  launches_.add("rest",
                take_score(passes_->output_precision(), scored_, score, launches_.stream()));
}

}  // namespace fedsmooth
