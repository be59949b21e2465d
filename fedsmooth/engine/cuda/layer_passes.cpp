#include "fedsmooth/engine/cuda/layer_passes.h"

#include "fedsmooth/engine/cuda/noisy_layer.h"

namespace fedsmooth {
namespace {

int64_t size_of(Precision precision) { return precision == Precision::kBfloat16 ? 2 : 4; }

// What is read of them: an image once, as its copies follow each other.
double bytes_of(const WaveShape& shape, const ExampleCopies& examples) {
  if (examples.copies == 0) return 0;
  const int each = 1 + (examples.noise == nullptr ? 0 : examples.copies);
  return static_cast<double>(sizeof(float)) * shape.clients * shape.batch * shape.image_size * each;
}

}  // namespace

LayerPasses::LayerPasses(const DevicePlan& device, Precision precision, int clients, int rows,
                         bool gradients)
    : device_(device), precision_(precision), clients_(clients), rows_(rows) {
  const std::vector<BatchedStage>& stages = device.plan.stages;
  const int64_t all_rows = int64_t{clients} * rows;
  const auto bytes = [&](const BatchedMap& map) {
    return all_rows * map.row_size() * size_of(precision);
  };
  input_ = DeviceArray<uint8_t>(bytes(stages.front().in));
  if (gradients) input_gradient_ = DeviceArray<uint8_t>(bytes(stages.front().in));
  for (size_t i = 0; i < stages.size(); ++i) {
    // A product and a pool in one have no map between them, nor a gradient after it.
    const bool before = i + 1 < stages.size() && fused_into_previous(i + 1);
    maps_.emplace_back(before ? 0 : bytes(stages[i].out));
    gradients_.emplace_back(gradients && !fused_into_previous(i) ? bytes(stages[i].out) : 0);
    choices_.emplace_back(gradients && fused_into_previous(i) ? all_rows * stages[i].out.row_size()
                                                              : 0);
  }
  logits_ = DeviceArray<float>(all_rows * stages.back().out.channels);
  gradients_.back().clear(nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "cudaMemset");
}

// Whether a stage is a pool that is done by the product before it.
bool LayerPasses::fused_into_previous(size_t i) const {
  const std::vector<BatchedStage>& stages = device_.plan.stages;
  return i > 0 && stages[i].pool2x2 && !stages[i - 1].is_pool &&
         precision_ == Precision::kBfloat16 && device_.by_output[i - 1].view().tiling.hopper;
}

const void* LayerPasses::kernel(const StackedWeights& weights, const BatchedStage& stage) const {
  const void* vectors = weights.working == nullptr ? weights.weights : weights.working;
  return static_cast<const char*>(vectors) + stage.kernel * size_of(precision_);
}

MapProduct LayerPasses::product_of(const StackedWeights& weights, const BatchedStage& stage) const {
  MapProduct p;
  p.clients = clients_;
  p.rows = rows_;
  p.kernel = kernel(weights, stage);
  p.kernel_client = p.bias_client = device_.plan.size;
  p.taps = stage.taps;
  return p;
}

Pooling LayerPasses::pooling_of(size_t i) const {
  const BatchedStage& stage = device_.plan.stages[i];
  Pooling p{clients_, rows_, stage.in.channels, stage.in.pixels(), stage.out.pixels()};
  p.windows = device_.by_output[i].view();
  p.windows_of = device_.by_input[i].view();
  p.relu = stage.relu;
  p.x = stage_input(i);
  p.y = maps_[i].data();
  return p;
}

// The cost of a product or of one of its gradients.
double LayerPasses::operations_of(const BatchedStage& stage) const {
  return 2.0 * count_pairs(stage.by_output) * clients_ * rows_ * stage.in.channels *
         stage.out.channels;
}

double LayerPasses::weights_of(const BatchedStage& stage) const {
  return static_cast<double>(clients_) * stage.taps * stage.in.channels * stage.out.channels;
}

// The map before and after.
double LayerPasses::map_bytes_of(const BatchedStage& stage) const {
  const auto values = static_cast<double>(stage.in.row_size() + stage.out.row_size());
  return values * clients_ * rows_ * static_cast<double>(size_of(precision_));
}

void LayerPasses::forward_stage(const StackedWeights& weights, size_t i, Launches& launches) {
  const BatchedStage& stage = device_.plan.stages[i];
  if (stage.is_pool) {
    launches.add("pooling", pool_maps(precision_, pooling_of(i), launches.stream()));
    return;
  }
  const bool last = i + 1 == maps_.size(), pooled = !last && fused_into_previous(i + 1);
  MapProduct p = product_of(weights, stage);
  p.depth = stage.in.channels;
  p.columns = stage.out.channels;
  p.left = stage_input(i);
  p.left_pixels = stage.in.pixels();
  p.pairs = device_.by_output[i].view();
  p.out = maps_[pooled ? i + 1 : i].data();
  if (last) p.out_float = logits_.data();
  p.bias = stage.has_bias ? weights.weights + stage.bias : nullptr;
  p.relu = stage.relu;
  if (pooled) {
    p.pool_columns = stage.out.width / 2;
    p.choice = gradients_.back().size() > 0 ? choices_[i + 1].data() : nullptr;
  }
  launches.add("products", multiply_maps(precision_, p, launches.stream()), operations_of(stage),
               map_bytes_of(stage) + weights_of(stage) * static_cast<double>(size_of(precision_)));
}

FirstLayerWave LayerPasses::first_layer(const WaveShape& shape, const InputMap& images,
                                        const StackedWeights& weights) const {
  const BatchedStage& stage = device_.plan.stages.front();
  FirstLayerWave w;
  w.shape = shape;
  w.images = images;
  w.kernel = kernel(weights, stage);
  w.bias = weights.weights + stage.bias;
  w.weights_client = device_.plan.size;
  w.out = maps_[kNoisyStages - 1].data();
  w.choice = gradients_.back().size() > 0 ? choices_[kNoisyStages - 1].data() : nullptr;
  return w;
}

void LayerPasses::run_images(Precision precision, const WaveShape& shape, const InputMap& images,
                             const StackedWeights& weights, PassMode mode, Launches& launches) {
  if (!has_noisy_layer(device_, precision_)) {
    WavePasses::run_images(precision, shape, images, weights, mode, launches);
    return;
  }
  const BatchedStage &stage = device_.plan.stages[0], &pool = device_.plan.stages[1];
  FirstLayerWave w = first_layer(shape, images, weights);
  // Only the weights' gradient reads it again.
  if (mode == PassMode::kAnswers) w.images.out = nullptr;
  const double rows = static_cast<double>(clients_) * rows_;
  const double written = static_cast<double>(pool.out.row_size()) * (w.choice == nullptr ? 2 : 3) +
                         (w.images.out == nullptr ? 0.0 : 2.0 * stage.in.row_size());
  launches.add("products", make_first_layer(w, launches.stream()), operations_of(stage),
               bytes_of(shape, images.first) + bytes_of(shape, images.second) + rows * written +
                   2 * weights_of(stage));
  forward_from(kNoisyStages, weights, launches);
}

void LayerPasses::forward(const StackedWeights& weights, Launches& launches) {
  forward_from(0, weights, launches);
}

void LayerPasses::forward_from(size_t first, const StackedWeights& weights, Launches& launches) {
  for (size_t i = first; i < maps_.size(); ++i) {
    if (!fused_into_previous(i)) forward_stage(weights, i, launches);
  }
}

// The gradient of a stage's input, or of the map before that if a pool lies between.
void LayerPasses::differentiate_stage(const StackedWeights& weights, size_t i, Launches& launches) {
  const std::vector<BatchedStage>& stages = device_.plan.stages;
  const BatchedStage& stage = stages[i];
  const bool pooled = i > 0 && fused_into_previous(i - 1);
  void* out = i == 0 ? input_gradient_.data() : gradients_[pooled ? i - 2 : i - 1].data();
  if (stage.is_pool) {
    Pooling p = pooling_of(i);
    p.dy = gradients_[i].data();
    p.dx = out;
    launches.add("pooling", pool_gradient(precision_, p, launches.stream()));
    return;
  }
  MapProduct p = product_of(weights, stage);
  p.gradient = true;
  p.depth = stage.out.channels;
  p.columns = stage.in.channels;
  p.left = gradients_[i].data();
  p.left_pixels = stage.out.pixels();
  p.pairs = device_.by_input[i].view();
  p.out = out;
  if (pooled) {
    p.pool_columns = stage.in.width;
    p.choice = choices_[i - 1].data();
  } else if (i > 0 && !stages[i - 1].is_pool && stages[i - 1].relu) {
    p.mask = maps_[i - 1].data();
  }
  launches.add("products", multiply_maps(precision_, p, launches.stream()), operations_of(stage),
               map_bytes_of(stage) + weights_of(stage) * static_cast<double>(size_of(precision_)));
}

void LayerPasses::differentiate_input(const StackedWeights& weights, Launches& launches) {
  for (size_t i = maps_.size(); i-- > 0;) {
    if (!fused_into_previous(i)) differentiate_stage(weights, i, launches);
  }
}

void LayerPasses::update_stage(const StackedWeights& weights, const ClientSettings* settings,
                               size_t i, Launches& launches) {
  const BatchedPlan& plan = device_.plan;
  const BatchedStage& stage = plan.stages[i];
  WeightUpdate u;
  u.clients = clients_;
  u.rows = rows_;
  u.in_channels = stage.in.channels;
  u.out_channels = stage.out.channels;
  u.in_pixels = stage.in.pixels();
  u.out_pixels = stage.out.pixels();
  u.x = stage_input(i);
  u.dy = gradients_[i].data();
  u.pairs = device_.by_tap[i].view();
  u.weights = weights.weights + stage.kernel;
  u.velocity = weights.velocity + stage.kernel;
  u.working =
      weights.working == nullptr ? nullptr : static_cast<char*>(weights.working) + stage.kernel * 2;
  u.global = weights.global == nullptr ? nullptr : weights.global + stage.kernel;
  u.client_size = plan.size;
  u.real = stage.masked ? device_.real.data() + stage.kernel : nullptr;
  u.settings = settings;
  // Weights and momentum are read and written, the working weights written.
  const double per_weight =
      (weights.working == nullptr ? 16 : 18) + (weights.global == nullptr ? 0 : 4);
  launches.add("update", update_weights(precision_, u, launches.stream()), operations_of(stage),
               map_bytes_of(stage) + weights_of(stage) * per_weight);
}

void LayerPasses::update_biases_of(const StackedWeights& weights, const ClientSettings* settings,
                                   Launches& launches) {
  std::vector<BiasUpdate> biases;
  for (size_t i = 0; i < maps_.size(); ++i) {
    const BatchedStage& stage = device_.plan.stages[i];
    if (stage.is_pool || !stage.has_bias) continue;
    BiasUpdate bias;
    bias.rows = rows_;
    bias.channels = stage.out.channels;
    bias.pixels = stage.out.pixels();
    bias.dy = gradients_[i].data();
    bias.weights = weights.weights + stage.bias;
    bias.velocity = weights.velocity + stage.bias;
    bias.global = weights.global == nullptr ? nullptr : weights.global + stage.bias;
    bias.client_size = device_.plan.size;
    bias.settings = settings;
    biases.push_back(bias);
  }
  launches.add("update", update_biases(precision_, clients_, biases, launches.stream()));
}

void LayerPasses::update(const StackedWeights& weights, const ClientSettings* settings,
                         Launches& launches) {
  for (size_t i = maps_.size(); i-- > 0;) {
    if (fused_into_previous(i)) continue;
    // Before the weights change.
    if (i > 0) differentiate_stage(weights, i, launches);
    if (!device_.plan.stages[i].is_pool) update_stage(weights, settings, i, launches);
  }
  // Beside the first stage's weights, which for many clients leave multiprocessors idle.
  update_biases_of(weights, settings, launches);
}

}  // namespace fedsmooth
