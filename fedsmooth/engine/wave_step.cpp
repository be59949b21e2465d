// A local step of all clients, as launches on the wave's stream.
#include <ATen/ATen.h>

#include "fedsmooth/engine/wave.h"

namespace fedsmooth {

// SmoothAdv(theta, b) and the SGD steps over its list, for all clients.
void Wave::enqueue_step() {
  check_cuda(load_images(shape_,
                         {data_.images.data(), data_.labels.data(), chosen_.data(),
                          static_cast<int>(task_.local.steps), task_.augment, augment_keys_.data(),
                          settings_.data(), step_.data(), x_.data(), y_.data()},
                         stream_),
             "load_images");
  if (noise() != nullptr) {
    check_cuda(draw_noise(shape_, settings_.data(), step_.data(), noise_.data(), stream_),
               "draw_noise");
  }
  check_cuda(cudaMemcpyAsync(x_adv_.data(), x_.data(), x_.size() * sizeof(float),
                             cudaMemcpyDeviceToDevice, stream_),
             "copy of x");
  if (attacked()) enqueue_attack();
  for (int64_t pass = 0; pass < task_.local.passes; ++pass) {
    enqueue_forward(noise());
    enqueue_loss(LossStep::Gradient::kLoss, shape_.noises, probability_.data(),
                 pass == 0 ? after_.data() : nullptr);
    enqueue_update();
  }
  check_cuda(next_step(step_.data(), stream_), "next_step");
}

void Wave::enqueue_attack() {
  const bool stochastic = task_.attack.estimator == Estimator::kStochastic;
  const bool two_point = task_.attack.estimator == Estimator::kTwoPoint;
  const BatchedMap& map = device_.plan.stages.front().in;
  for (int64_t step = 0; step < task_.attack.steps; ++step) {
    if (two_point) {
      enqueue_forward(nullptr);
      enqueue_loss(LossStep::Gradient::kNone, 1, baseline_.data(), nullptr);
    }
    enqueue_forward(noise());
    enqueue_loss(stochastic ? LossStep::Gradient::kAttack : LossStep::Gradient::kNone,
                 shape_.noises, probability_.data(), step == 0 ? before_.data() : nullptr);
    if (stochastic) enqueue_input_gradient();
    AttackStep attack;
    attack.x = x_.data();
    attack.x_adv = x_adv_.data();
    attack.map_gradient = stochastic ? input_gradient_.data() : nullptr;
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
    check_cuda(step_attack(precision_, shape_, attack, stream_), "step_attack");
  }
}

void Wave::enqueue_forward(const float* noise) {
  const BatchedPlan& plan = device_.plan;
  const BatchedMap& map = plan.stages.front().in;
  check_cuda(make_input(precision_, shape_,
                        {x_adv_.data(), noise, device_.source.data(), device_.mean.data(),
                         device_.scale.data(), map.pixels(), map.channels, input_.data()},
                        stream_),
             "make_input");
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const BatchedStage& stage = plan.stages[i];
    if (stage.is_pool) {
      Pooling p{shape_.clients, shape_.rows, stage.in.channels, stage.in.pixels(),
                stage.out.pixels()};
      p.windows = device_.by_output[i].view();
      p.x = stage_input(i);
      p.y = maps_[i].data();
      check_cuda(pool_maps(precision_, p, stream_), "pool_maps");
      continue;
    }
    MapProduct p;
    p.clients = shape_.clients;
    p.rows = shape_.rows;
    p.depth = stage.in.channels;
    p.columns = stage.out.channels;
    p.left = stage_input(i);
    p.left_pixels = stage.in.pixels();
    p.taps = stage.taps;
    p.kernel = kernel(stage);
    p.kernel_client = p.bias_client = plan.size;
    p.pairs = device_.by_output[i].view();
    p.out = maps_[i].data();
    if (i + 1 == plan.stages.size()) p.out_float = logits_.data();
    p.bias = stage.has_bias ? weights_.data() + stage.bias : nullptr;
    p.relu = stage.relu;
    check_cuda(multiply_maps(precision_, p, stream_), "multiply_maps");
  }
}

void Wave::enqueue_loss(LossStep::Gradient gradient, int noises, float* probability, float* seen) {
  WaveShape shape = shape_;
  shape.noises = noises;
  check_cuda(take_loss(precision_, shape,
                       {gradient, logits_.data(), y_.data(), probability, gradients_.back().data(),
                        loss_.data(), step_.data(), seen},
                       stream_),
             "take_loss");
}

// The gradient of a stage's input, from that of its output.
void Wave::enqueue_stage_gradient(size_t i, void* out) {
  const BatchedPlan& plan = device_.plan;
  const BatchedStage& stage = plan.stages[i];
  if (stage.is_pool) {
    Pooling p{shape_.clients, shape_.rows, stage.in.channels, stage.in.pixels(),
              stage.out.pixels()};
    p.windows = device_.by_output[i].view();
    p.windows_of = device_.by_input[i].view();
    p.relu = stage.relu;
    p.x = stage_input(i);
    p.y = maps_[i].data();
    p.dy = gradients_[i].data();
    p.dx = out;
    check_cuda(pool_gradient(precision_, p, stream_), "pool_gradient");
    return;
  }
  MapProduct p;
  p.gradient = true;
  p.clients = shape_.clients;
  p.rows = shape_.rows;
  p.depth = stage.out.channels;
  p.columns = stage.in.channels;
  p.left = gradients_[i].data();
  p.left_pixels = stage.out.pixels();
  p.taps = stage.taps;
  p.kernel = kernel(stage);
  p.kernel_client = plan.size;
  p.pairs = device_.by_input[i].view();
  p.out = out;
  const bool after_relu = i > 0 && !plan.stages[i - 1].is_pool && plan.stages[i - 1].relu;
  p.mask = after_relu ? maps_[i - 1].data() : nullptr;
  check_cuda(multiply_maps(precision_, p, stream_), "multiply_maps");
}

void Wave::enqueue_input_gradient() {
  for (size_t i = device_.plan.stages.size(); i-- > 0;) {
    enqueue_stage_gradient(i, i == 0 ? input_gradient_.data() : gradients_[i - 1].data());
  }
}

void Wave::enqueue_update() {
  const BatchedPlan& plan = device_.plan;
  for (size_t i = plan.stages.size(); i-- > 0;) {
    // Before the weights change.
    if (i > 0) enqueue_stage_gradient(i, gradients_[i - 1].data());
    const BatchedStage& stage = plan.stages[i];
    if (stage.is_pool) continue;
    WeightUpdate u;
    u.clients = shape_.clients;
    u.rows = shape_.rows;
    u.in_channels = stage.in.channels;
    u.out_channels = stage.out.channels;
    u.in_pixels = stage.in.pixels();
    u.out_pixels = stage.out.pixels();
    u.x = stage_input(i);
    u.dy = gradients_[i].data();
    u.pairs = device_.by_tap[i].view();
    u.weights = weights_.data() + stage.kernel;
    u.velocity = velocity_.data() + stage.kernel;
    u.working = working_.data() == nullptr ? nullptr : working_.data() + stage.kernel * 2;
    u.client_size = plan.size;
    u.real = stage.masked ? device_.real.data() + stage.kernel : nullptr;
    u.settings = settings_.data();
    check_cuda(update_kernel(precision_, u, stream_), "update_kernel");
    if (!stage.has_bias) continue;
    check_cuda(update_bias(precision_,
                           {shape_.clients, shape_.rows, stage.out.channels, stage.out.pixels(),
                            gradients_[i].data(), weights_.data() + stage.bias,
                            velocity_.data() + stage.bias, plan.size, settings_.data()},
                           stream_),
               "update_bias");
  }
}

}  // namespace fedsmooth
