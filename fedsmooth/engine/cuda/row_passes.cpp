#include "fedsmooth/engine/cuda/row_passes.h"

#include "fedsmooth/base/check.h"

namespace fedsmooth {

RowPasses::RowPasses(const RowNetwork& device, Precision precision, int clients, int rows,
                     bool gradients)
    : device_(device),
      graph_(device.graph),
      nodes_(std::span(graph_.nodes).first(graph_.nodes.size() - 1)),
      precision_(precision),
      clients_(clients),
      rows_(rows),
      plan_(plan_gradients(graph_)) {
  const int64_t all_rows = int64_t{clients} * rows, bytes = value_bytes();
  for (const MapShape& map : std::span(graph_.maps).first(graph_.maps.size() - 1)) {
    maps_.emplace_back(all_rows * map.row_size() * bytes);
  }
  kernels_ = DeviceArray<uint8_t>(clients * graph_.working * bytes);
  turned_ = DeviceArray<uint8_t>(clients * graph_.working * bytes);
  shift_ = DeviceArray<float>(int64_t{clients} * graph_.channels);
  values_ = DeviceArray<NormValues>(int64_t{clients} * graph_.channels);
  const GraphNode& head = graph_.head();
  means_ = DeviceArray<float>(all_rows * head.taps() * head.in.channels);
  logits_ = DeviceArray<float>(all_rows * graph_.classes);
  if (gradients) add_gradients();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    pairs_.push_back(precision == Precision::kBfloat16 && nodes_[i].paired &&
                     can_pair({convolution_of(nodes_[i]), convolution_of(nodes_[i + 1])}));
  }
}

RowConvolution RowPasses::convolution_of(const GraphNode& node) const {
  RowConvolution c;
  c.clients = clients_;
  c.rows = rows_;
  c.in = node.in;
  c.out = node.out;
  c.kernel = node.kernel;
  c.stride = node.stride;
  c.padding = node.padding;
  c.wide = node.wide;
  c.weights_client = graph_.working;
  return c;
}

NormWeights RowPasses::norm_of(const StackedWeights& weights, const GraphNode& node) const {
  const int64_t bias = node.has_norm ? node.norm_bias : node.bias;
  return {weights.weights, graph_.size, node.scale, bias, node.mean, node.variance};
}

RowHead RowPasses::head_of(const StackedWeights& weights) const {
  RowHead head;
  head.clients = clients_;
  head.rows = rows_;
  head.classes = graph_.classes;
  head.map = graph_.head().in;
  head.x = maps_[graph_.head().input].data();
  head.vectors = weights.weights;
  head.size = graph_.size;
  head.weight = graph_.head().weight;
  head.bias = graph_.head().bias;
  head.has_bias = graph_.head().has_bias;
  head.flat = graph_.head().taps() > 1;
  head.means = means_.data();
  head.logits = logits_.data();
  return head;
}

double RowPasses::bytes_of(const MapShape& map) const {
  return static_cast<double>(clients_) * rows_ * static_cast<double>(map.row_size()) *
         static_cast<double>(value_bytes());
}

// Returns the operations of a convolution or one of its gradients, padding included.
double RowPasses::operations_of(const GraphNode& node) const {
  return 2.0 * clients_ * rows_ * node.out.pixels() * static_cast<double>(node.kernel_size());
}

void RowPasses::prepare(const StackedWeights& weights, PassMode mode, Launches& launches) {
  if (prepared_ == mode) return;
  prepared_ = mode;
  WorkingWeights w;
  w.clients = clients_;
  w.nodes = static_cast<int>(device_.places.size());
  w.channels = graph_.channels;
  w.blocks = device_.blocks;
  w.places = device_.places.data();
  w.vectors = weights.weights;
  w.size = graph_.size;
  w.working = graph_.working;
  w.fold = mode == PassMode::kAnswers;
  w.kernels = kernels_.data();
  w.turned = turned_.data();
  w.shift = shift_.data();
  if (w.nodes > 0) launches.add("weights", prepare_weights(precision_, w, launches.stream()));
  if (mode == PassMode::kTraining) return;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    // Those behind convolutions are folded into kernels.
    if (nodes_[i].convolves() || !nodes_[i].has_batch_norm()) continue;
    launches.add("weights", use_running_statistics(statistics_of(weights, i), launches.stream()));
  }
}

void RowPasses::run(const StackedWeights& weights, PassMode mode, Launches& launches) {
  check(mode == PassMode::kAnswers || !gradients_.empty(), "RowPasses: without gradients");
  prepare(weights, mode, launches);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (mode == PassMode::kAnswers && pairs_[i]) {
      run_pair(i++, launches);
    } else {
      run_node(weights, i, mode, launches);
    }
  }
  launches.add("rest", answer_rows(precision_, head_of(weights), launches.stream()));
}

// Returns the convolution of a node whose batch norm, if it has one, is folded into its kernel.
RowConvolution RowPasses::answer_of(size_t i) const {
  const GraphNode& node = nodes_[i];
  RowConvolution c = convolution_of(node);
  c.x = maps_[node.input].data();
  c.weights = kernels_.data() + node.weight * value_bytes();
  c.bias = shift_.data() + node.channel;
  c.bias_client = graph_.channels;
  c.add = node.shortcut < 0 ? nullptr : maps_[node.shortcut].data();
  c.relu = node.relu;
  c.y = maps_[node.output].data();
  return c;
}

void RowPasses::run_pair(size_t i, Launches& launches) {
  const GraphNode& node = nodes_[i];
  RowPair pair{answer_of(i), answer_of(i + 1)};
  const bool keeps = !gradients_.empty();  // the backward pass needs the map between as a mask
  if (!keeps) pair.first.y = nullptr;
  launches.add("convolutions", convolve_pair(pair, launches.stream()), 2 * operations_of(node),
               (keeps ? 3 : 2) * bytes_of(node.out));
}

void RowPasses::run_node(const StackedWeights& weights, size_t i, PassMode mode,
                         Launches& launches) {
  const GraphNode& node = nodes_[i];
  if (node.convolves()) return run_convolution(weights, i, mode, launches);
  if (node.has_norm) return run_norm(weights, i, mode, launches);
  if (node.has_dropout()) {
    launches.add("dropout", drop_values(precision_, dropout_of(node, mode), launches.stream()), 0,
                 2 * bytes_of(node.out));
    return;
  }
  launches.add("pooling", pool_rows(precision_, pool_of(node), launches.stream()), 0,
               bytes_of(node.in) + bytes_of(node.out));
}

void RowPasses::run_convolution(const StackedWeights& weights, size_t i, PassMode mode,
                                Launches& launches) {
  const GraphNode& node = nodes_[i];
  const bool trains = mode == PassMode::kTraining, batch_norm = trains && node.has_batch_norm();
  RowConvolution c = answer_of(i);
  if (batch_norm || node.has_group_norm()) {
    if (!node.has_bias) c.bias = nullptr;
    c.add = nullptr;
    c.relu = false;
    c.y = before_norm(i);
  }
  if (batch_norm || (trains && feeds_norm(i))) c.sums = sums_[i].data();
  launches.add("convolutions", convolve_rows(precision_, c, launches.stream()), operations_of(node),
               bytes_of(node.in) + bytes_of(node.out));
  if (batch_norm) take_batch_norm(weights, i, c.sums, convolution_parts(precision_, c), launches);
  if (node.has_group_norm()) take_group_norm(weights, i, launches);
}

RowPool RowPasses::pool_of(const GraphNode& node) const {
  RowPool p;
  p.clients = clients_;
  p.rows = rows_;
  p.in = node.in;
  p.out = node.out;
  p.kernel = node.pool;
  p.stride = node.pool_stride;
  p.means = node.means;
  p.x = maps_[node.input].data();
  p.y = maps_[node.output].data();
  return p;
}

RowDropout RowPasses::dropout_of(const GraphNode& node, PassMode mode) const {
  const bool trains = mode == PassMode::kTraining;
  check(!trains || draws_.keys != nullptr, "RowPasses: dropout without streams");
  RowDropout d;
  d.clients = clients_;
  d.rows = rows_;
  d.map = node.out;
  d.channels = node.dropout.channels;
  d.rate = static_cast<float>(node.dropout.rate);
  d.factor = static_cast<float>(1 / (1 - node.dropout.rate));
  d.sample = node.dropout.sample;
  if (trains) d.draws = draws_;
  d.x = maps_[node.input].data();
  d.y = maps_[node.output].data();
  return d;
}

}  // namespace fedsmooth
