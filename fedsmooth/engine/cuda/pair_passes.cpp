#include "fedsmooth/engine/cuda/pair_passes.h"

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cuda/noisy_layer.h"

namespace fedsmooth {
namespace {

int64_t size_of(Precision precision) { return precision == Precision::kBfloat16 ? 2 : 4; }

// Returns the bytes that are read of examples. An image counts once, as its copies are consecutive.
double bytes_of(const WaveShape& shape, const ExampleCopies& examples) {
  if (examples.copies == 0) return 0;
  const int each = 1 + (examples.noise == nullptr ? 0 : examples.copies);
  return static_cast<double>(sizeof(float)) * shape.clients * shape.batch * shape.image_size * each;
}

}  // namespace

PairPasses::PairPasses(const PairNetwork& device, Precision precision, int clients, int rows,
                       bool gradients)
    : device_(device),
      nodes_(device.graph.nodes),
      precision_(precision),
      clients_(clients),
      rows_(rows) {
  check(rows % device.row_multiple == 0, "PairPasses: {} rows, no multiple of {}", rows,
        device.row_multiple);
  const int64_t all_rows = int64_t{clients} * rows;
  const auto bytes = [&](const MapShape& map, bool wanted) {
    return wanted ? all_rows * map.row_size() * size_of(precision) : 0;
  };
  input_ = DeviceArray<uint8_t>(bytes(nodes_.front().in, true));
  input_gradient_ = DeviceArray<uint8_t>(bytes(nodes_.front().in, gradients));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const GraphNode& node = nodes_[i];
    const bool multiplies = node.op != GraphNode::Op::kNone, fused = fuses_pool(i);
    const bool pools = node.has_pool() && !fused;
    maps_.emplace_back(bytes(node.out, true));
    before_pool_.emplace_back(bytes(node.map, multiplies && pools));
    gradients_.emplace_back(bytes(node.map, gradients && multiplies));
    pooled_gradients_.emplace_back(bytes(node.out, gradients && pools));
    choices_.emplace_back(gradients && fused ? all_rows * node.out.row_size() : 0);
  }
  logits_ = DeviceArray<float>(all_rows * nodes_.back().out.channels);
  gradients_.back().clear(nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "cudaMemset");
}

const void* PairPasses::kernel(const StackedWeights& weights, const GraphNode& node) const {
  const void* vectors = weights.working == nullptr ? weights.weights : weights.working;
  return static_cast<const char*>(vectors) + node.weight * size_of(precision_);
}

MapProduct PairPasses::product_of(const StackedWeights& weights, const GraphNode& node) const {
  MapProduct p;
  p.clients = clients_;
  p.rows = rows_;
  p.kernel = kernel(weights, node);
  p.kernel_client = p.bias_client = device_.graph.size;
  p.taps = node.taps();
  return p;
}

Pooling PairPasses::pooling_of(size_t i) const {
  const GraphNode& node = nodes_[i];
  Pooling p{clients_, rows_, node.map.channels, node.map.pixels(), node.out.pixels()};
  p.windows = device_.tables[i].windows->view();
  p.windows_of = device_.tables[i].windows_of->view();
  p.relu = node.relu;
  p.x = before_pool_[i].size() > 0 ? before_pool_[i].data() : node_input(i);
  p.y = maps_[i].data();
  return p;
}

// Returns the operations of a product or of one of its gradients.
double PairPasses::operations_of(size_t i) const {
  return 2.0 * device_.tables[i].pairs * clients_ * rows_ * nodes_[i].in.channels *
         nodes_[i].map.channels;
}

double PairPasses::weights_of(const GraphNode& node) const {
  return static_cast<double>(clients_) * static_cast<double>(node.kernel_size());
}

// Returns the bytes of the maps before and after a product.
double PairPasses::map_bytes_of(const GraphNode& node) const {
  const auto values = static_cast<double>(node.in.row_size() + node.map.row_size());
  return values * clients_ * rows_ * static_cast<double>(size_of(precision_));
}

void PairPasses::multiply(const StackedWeights& weights, size_t i, Launches& launches) {
  const GraphNode& node = nodes_[i];
  MapProduct p = product_of(weights, node);
  p.depth = node.in.channels;
  p.columns = node.map.channels;
  p.left = node_input(i);
  p.left_pixels = node.in.pixels();
  p.pairs = device_.tables[i].by_output->view();
  p.out = before_pool_[i].size() > 0 ? before_pool_[i].data() : maps_[i].data();
  if (i + 1 == nodes_.size()) p.out_float = logits_.data();
  p.bias = node.has_bias ? weights.weights + node.bias : nullptr;
  p.relu = node.relu;
  if (fuses_pool(i)) {
    p.pool_columns = node.out.width;
    p.choice = has_gradients() ? choices_[i].data() : nullptr;
  }
  launches.add("products", multiply_maps(precision_, p, launches.stream()), operations_of(i),
               map_bytes_of(node) + weights_of(node) * static_cast<double>(size_of(precision_)));
}

FirstLayerWave PairPasses::first_layer(const WaveShape& shape, const InputMap& images,
                                       const StackedWeights& weights) const {
  const GraphNode& node = nodes_.front();
  FirstLayerWave w;
  w.shape = shape;
  w.images = images;
  w.kernel = kernel(weights, node);
  w.bias = weights.weights + node.bias;
  w.weights_client = device_.graph.size;
  w.out = maps_.front().data();
  w.choice = has_gradients() ? choices_.front().data() : nullptr;
  return w;
}

void PairPasses::run_images(Precision precision, const WaveShape& shape, const InputMap& images,
                            const StackedWeights& weights, PassMode mode, Launches& launches) {
  if (!has_noisy_layer(device_, precision_)) {
    WavePasses::run_images(precision, shape, images, weights, mode, launches);
    return;
  }
  const GraphNode& node = nodes_.front();
  FirstLayerWave w = first_layer(shape, images, weights);
  // Only the weights' gradient reads the input map again.
  if (mode == PassMode::kAnswers) w.images.out = nullptr;
  const double rows = static_cast<double>(clients_) * rows_;
  const double written = static_cast<double>(node.out.row_size()) * (w.choice == nullptr ? 2 : 3) +
                         (w.images.out == nullptr ? 0.0 : 2.0 * node.in.row_size());
  launches.add("products", make_first_layer(w, launches.stream()), operations_of(0),
               bytes_of(shape, images.first) + bytes_of(shape, images.second) + rows * written +
                   2 * weights_of(node));
  forward_from(1, weights, launches);
}

void PairPasses::forward(const StackedWeights& weights, Launches& launches) {
  forward_from(0, weights, launches);
}

void PairPasses::forward_from(size_t first, const StackedWeights& weights, Launches& launches) {
  for (size_t i = first; i < nodes_.size(); ++i) {
    if (nodes_[i].op != GraphNode::Op::kNone) multiply(weights, i, launches);
    if (nodes_[i].has_pool() && !fuses_pool(i)) {
      launches.add("pooling", pool_maps(precision_, pooling_of(i), launches.stream()));
    }
  }
}

// Computes the gradient of the map before a node's maxima from that of the maxima.
void PairPasses::pool_back(size_t i, Launches& launches) {
  if (!nodes_[i].has_pool() || fuses_pool(i)) return;
  Pooling p = pooling_of(i);
  p.dy = pooled_gradients_[i].data();
  p.dx = gradients_[i].size() > 0 ? gradients_[i].data() : gradient_from_next(i - 1);
  launches.add("pooling", pool_gradient(precision_, p, launches.stream()));
}

// Computes the gradient of a node's input from that of its operation's result.
void PairPasses::input_back(const StackedWeights& weights, size_t i, Launches& launches) {
  const GraphNode& node = nodes_[i];
  MapProduct p = product_of(weights, node);
  p.gradient = true;
  p.depth = node.map.channels;
  p.columns = node.in.channels;
  p.left = gradients_[i].data();
  p.left_pixels = node.map.pixels();
  p.pairs = device_.tables[i].by_input->view();
  p.out = i == 0 ? input_gradient_.data() : gradient_from_next(i - 1);
  if (i > 0 && fuses_pool(i - 1)) {
    p.pool_columns = node.in.width;
    p.choice = choices_[i - 1].data();
  } else if (i > 0 && !nodes_[i - 1].has_pool() && nodes_[i - 1].relu) {
    p.mask = maps_[i - 1].data();
  }
  launches.add("products", multiply_maps(precision_, p, launches.stream()), operations_of(i),
               map_bytes_of(node) + weights_of(node) * static_cast<double>(size_of(precision_)));
}

void PairPasses::differentiate_input(const StackedWeights& weights, Launches& launches) {
  for (size_t i = nodes_.size(); i-- > 0;) {
    pool_back(i, launches);
    if (nodes_[i].op != GraphNode::Op::kNone) input_back(weights, i, launches);
  }
}

void PairPasses::update_kernel(const StackedWeights& weights, const ClientSettings* settings,
                               size_t i, Launches& launches) {
  const GraphNode& node = nodes_[i];
  WeightUpdate u;
  u.clients = clients_;
  u.rows = rows_;
  u.in_channels = node.in.channels;
  u.out_channels = node.map.channels;
  u.in_pixels = node.in.pixels();
  u.out_pixels = node.map.pixels();
  u.x = node_input(i);
  u.dy = gradients_[i].data();
  u.pairs = device_.tables[i].by_tap->view();
  u.weights = weights.weights + node.weight;
  u.velocity = weights.velocity + node.weight;
  u.working =
      weights.working == nullptr ? nullptr : static_cast<char*>(weights.working) + node.weight * 2;
  u.global = weights.global == nullptr ? nullptr : weights.global + node.weight;
  u.client_size = device_.graph.size;
  u.real = node.is_masked() ? device_.real.data() + node.weight : nullptr;
  u.settings = settings;
  // Weights and momentum are read and written; the working weights are written.
  const double per_weight =
      (weights.working == nullptr ? 16 : 18) + (weights.global == nullptr ? 0 : 4);
  launches.add("update", update_weights(precision_, u, launches.stream()), operations_of(i),
               map_bytes_of(node) + weights_of(node) * per_weight);
}

void PairPasses::update_biases_of(const StackedWeights& weights, const ClientSettings* settings,
                                  Launches& launches) {
  std::vector<BiasUpdate> biases;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const GraphNode& node = nodes_[i];
    if (!node.has_bias) continue;
    BiasUpdate bias;
    bias.rows = rows_;
    bias.channels = node.map.channels;
    bias.pixels = node.map.pixels();
    bias.dy = gradients_[i].data();
    bias.weights = weights.weights + node.bias;
    bias.velocity = weights.velocity + node.bias;
    bias.global = weights.global == nullptr ? nullptr : weights.global + node.bias;
    bias.client_size = device_.graph.size;
    bias.settings = settings;
    biases.push_back(bias);
  }
  launches.add("update", update_biases(precision_, clients_, biases, launches.stream()));
}

void PairPasses::update(const StackedWeights& weights, const ClientSettings* settings,
                        Launches& launches) {
  for (size_t i = nodes_.size(); i-- > 0;) {
    pool_back(i, launches);
    if (nodes_[i].op == GraphNode::Op::kNone) continue;
    if (i > 0) input_back(weights, i, launches);  // reads the weights before they change
    update_kernel(weights, settings, i, launches);
  }
  // Overlaps the update of the first node's weights, which with many clients leaves multiprocessors
  // idle.
  update_biases_of(weights, settings, launches);
}

}  // namespace fedsmooth
