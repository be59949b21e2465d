#include "fedsmooth/engine/cuda/residual_passes.h"

#include <algorithm>

namespace fedsmooth {
namespace {

int64_t size_of(Precision precision) { return precision == Precision::kBfloat16 ? 2 : 4; }

// The map whose gradient is that of `map` too: what is only added has the gradient of the sum.
int gradient_map(const ResidualGraph& graph, int map) {
  int sum = -1;
  for (const GraphNode& node : graph.nodes) {
    if (node.input == map) return map;
    if (node.shortcut == map) sum = node.output;
  }
  return sum < 0 ? map : sum;
}

}  // namespace

ResidualPasses::ResidualPasses(const ResidualDevice& device, Precision precision, int clients,
                               int rows)
    : device_(device), graph_(device.graph), precision_(precision), clients_(clients), rows_(rows) {
  const int64_t all_rows = int64_t{clients} * rows, bytes = size_of(precision);
  int64_t largest = 0;
  made_by_.assign(graph_.maps.size(), -1);
  for (size_t i = 0; i < graph_.maps.size(); ++i) {
    const int64_t size = all_rows * graph_.maps[i].row_size() * bytes;
    largest = std::max(largest, size);
    gradient_at_.push_back(gradient_map(graph_, static_cast<int>(i)));
    maps_.emplace_back(size);
    gradients_.emplace_back(gradient_at_[i] == static_cast<int>(i) ? size : 0);
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    made_by_[node.output] = static_cast<int>(i);
    raw_.emplace_back(node.has_norm ? all_rows * node.out.row_size() * bytes : 0);
    // Of its own convolution's results, of a whole map, or of those of a convolution that reads it.
    int parts =
        std::max(convolution_parts(precision, convolution_of(node)), map_parts(rows, node.out));
    for (const GraphNode& reader : graph_.nodes) {
      if (reader.input != node.output) continue;
      parts = std::max(parts, convolution_parts(precision, back_of(reader)));
    }
    sums_.emplace_back(int64_t{clients} * parts * 2 * node.out.channels);
  }
  parts_.assign(graph_.nodes.size(), 0);
  dx_ = DeviceArray<uint8_t>(largest);
  kernels_ = DeviceArray<uint8_t>(clients * graph_.working * bytes);
  turned_ = DeviceArray<uint8_t>(clients * graph_.working * bytes);
  shift_ = DeviceArray<float>(int64_t{clients} * graph_.channels);
  means_ = DeviceArray<float>(all_rows * graph_.last().channels);
  logits_ = DeviceArray<float>(all_rows * graph_.classes);
  dlogits_ = DeviceArray<float>(all_rows * graph_.classes);
  kernel_gradients_ = DeviceArray<float>(gradient_pieces(rows) * clients * graph_.kernels);
  weight_gradients_ = DeviceArray<float>(clients * graph_.size);
  values_ = DeviceArray<NormValues>(int64_t{clients} * graph_.channels);
  // Rows and weights that only fill up get no gradient of their own.
  dlogits_.clear(nullptr);
  kernel_gradients_.clear(nullptr);
  weight_gradients_.clear(nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "maps");
}

RowConvolution ResidualPasses::convolution_of(const GraphNode& node) const {
  RowConvolution c;
  c.clients = clients_;
  c.rows = rows_;
  c.in = node.in;
  c.out = node.out;
  c.kernel = node.kernel;
  c.stride = node.stride;
  c.padding = node.padding;
  c.weights_client = graph_.working;
  return c;
}

NormWeights ResidualPasses::norm_of(const StackedWeights& weights, const GraphNode& node) const {
  return {weights.weights, graph_.size, node.scale, node.bias, node.mean, node.variance};
}

RowHead ResidualPasses::head_of(const StackedWeights& weights) const {
  RowHead head;
  head.clients = clients_;
  head.rows = rows_;
  head.classes = graph_.classes;
  head.map = graph_.last();
  head.x = maps_[graph_.nodes.back().output].data();
  head.vectors = weights.weights;
  head.size = graph_.size;
  head.weight = graph_.linear;
  head.bias = graph_.linear_bias;
  head.has_bias = graph_.linear_has_bias;
  head.means = means_.data();
  head.logits = logits_.data();
  return head;
}

double ResidualPasses::bytes_of(const RowMap& map) const {
  return static_cast<double>(clients_) * rows_ * static_cast<double>(map.row_size()) *
         static_cast<double>(size_of(precision_));
}

// Of a convolution or one of its gradients, padding included.
double ResidualPasses::operations_of(const GraphNode& node) const {
  return 2.0 * clients_ * rows_ * node.out.pixels() * static_cast<double>(node.kernel_size());
}

void ResidualPasses::prepare(const StackedWeights& weights, PassMode mode, Launches& launches) {
  if (prepared_ == mode) return;
  prepared_ = mode;
  WorkingWeights w;
  w.clients = clients_;
  w.nodes = static_cast<int>(graph_.nodes.size());
  w.channels = graph_.channels;
  w.places = device_.places.data();
  w.vectors = weights.weights;
  w.size = graph_.size;
  w.working = graph_.working;
  w.fold = mode == PassMode::kAnswers;
  w.kernels = kernels_.data();
  w.turned = turned_.data();
  w.shift = shift_.data();
  launches.add("weights", prepare_weights(precision_, w, launches.stream()));
}

void ResidualPasses::run(const StackedWeights& weights, PassMode mode, Launches& launches) {
  prepare(weights, mode, launches);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) run_node(weights, i, mode, launches);
  launches.add("rest", answer_rows(precision_, head_of(weights), launches.stream()));
}

void ResidualPasses::run_node(const StackedWeights& weights, size_t i, PassMode mode,
                              Launches& launches) {
  const GraphNode& node = graph_.nodes[i];
  const bool norm = mode == PassMode::kTraining && node.has_norm;
  RowConvolution c = convolution_of(node);
  c.x = maps_[node.input].data();
  c.weights = kernels_.data() + node.weight * size_of(precision_);
  c.y = norm ? raw_[i].data() : maps_[node.output].data();
  if (norm) {
    c.sums = sums_[i].data();
  } else {
    c.bias = shift_.data() + node.channel;
    c.bias_client = graph_.channels;
    c.add = node.shortcut < 0 ? nullptr : maps_[node.shortcut].data();
    c.relu = node.relu;
  }
  launches.add("convolutions", convolve_rows(precision_, c, launches.stream()), operations_of(node),
               bytes_of(node.in) + bytes_of(node.out));
  if (norm) take_norm(weights, i, convolution_parts(precision_, c), launches);
}

void ResidualPasses::take_norm(const StackedWeights& weights, size_t i, int parts,
                               Launches& launches) {
  const GraphNode& node = graph_.nodes[i];
  const NormStatistics statistics{clients_,
                                  rows_,
                                  parts,
                                  node.out,
                                  sums_[i].data(),
                                  norm_of(weights, node),
                                  values_.data() + node.channel,
                                  graph_.channels};
  launches.add("norms", take_statistics(statistics, launches.stream()));
  const NormApply apply{clients_,
                        rows_,
                        node.out,
                        raw_[i].data(),
                        node.shortcut < 0 ? nullptr : maps_[node.shortcut].data(),
                        node.relu,
                        values_.data() + node.channel,
                        graph_.channels,
                        maps_[node.output].data()};
  launches.add("norms", apply_norm(precision_, apply, launches.stream()), 0,
               (node.shortcut < 0 ? 2 : 3) * bytes_of(node.out));
}

void ResidualPasses::end_back(const StackedWeights& weights, Launches& launches) {
  const GraphNode& last = graph_.nodes.back();
  const RowHeadGradient g{head_of(weights), dlogits_.data(), last.relu, gradient_of(last.output)};
  launches.add("rest", differentiate_means(precision_, g, launches.stream()));
}

void ResidualPasses::differentiate_images(const StackedWeights& weights, Launches& launches) {
  prepare(weights, PassMode::kAnswers, launches);
  end_back(weights, launches);
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    input_back(i, gradient_of(graph_.nodes[i].output), PassMode::kAnswers, launches);
  }
}

// The gradient before the norm.
const void* ResidualPasses::norm_back(const StackedWeights& weights, size_t i, Launches& launches) {
  const GraphNode& node = graph_.nodes[i];
  const void* dy = gradient_of(node.output);
  if (!node.has_norm && !node.has_bias) return dy;
  NormGradient g;
  g.clients = clients_;
  g.rows = rows_;
  g.map = node.out;
  g.x = node.has_norm ? raw_[i].data() : nullptr;
  g.dy = dy;
  g.sums = sums_[i].data();
  g.parts = std::exchange(parts_[i], 0);
  g.weights = norm_of(weights, node);
  g.gradients = weight_gradients_.data();
  g.values = values_.data() + node.channel;
  g.values_client = graph_.channels;
  g.dx = dx_.data();
  launches.add("norms", differentiate_norm(precision_, g, launches.stream()), 0,
               (node.has_norm ? (g.parts > 0 ? 3 : 5) : 1) * bytes_of(node.out));
  return node.has_norm ? dx_.data() : dy;
}

void ResidualPasses::kernel_back(size_t i, const void* dy, Launches& launches) {
  const GraphNode& node = graph_.nodes[i];
  RowGradient g;
  g.forward = convolution_of(node);
  g.forward.x = maps_[node.input].data();
  g.pieces = gradient_pieces(rows_);
  g.dy = dy;
  g.gradient = kernel_gradients_.data() + node.weight;
  g.gradient_client = graph_.kernels;
  launches.add("kernel gradients", differentiate_kernel(precision_, g, launches.stream()),
               operations_of(node), bytes_of(node.in) + bytes_of(node.out));
}

// The gradient of a convolution's input is one of its output's gradient.
RowConvolution ResidualPasses::back_of(const GraphNode& node) const {
  RowConvolution c = convolution_of(node);
  std::swap(c.in, c.out);
  c.stride = 1;
  c.spread = node.stride;
  c.padding = node.kernel - 1 - node.padding;
  return c;
}

// Convolutions that read a map add their gradients one after another, the last in the list first;
// where it is added as a shortcut too, that gradient is the first. The last one applies its ReLU.
void ResidualPasses::input_back(size_t i, const void* dy, PassMode mode, Launches& launches) {
  const GraphNode& node = graph_.nodes[i];
  bool begins = true, ends = true;
  const void* add = nullptr;
  for (size_t j = 0; j < graph_.nodes.size(); ++j) {
    const GraphNode& other = graph_.nodes[j];
    if (j > i && other.input == node.input) begins = false;
    if (j < i && other.input == node.input) ends = false;
    if (other.shortcut == node.input) add = gradient_of(other.output);
  }
  RowConvolution c = back_of(node);
  c.x = dy;
  c.weights = turned_.data() + node.weight * size_of(precision_);
  c.y = gradient_of(node.input);
  c.add = begins ? add : c.y;
  const int made_by = made_by_[node.input];
  if (ends && made_by >= 0 && graph_.nodes[made_by].relu) c.mask = maps_[node.input].data();
  if (ends && mode == PassMode::kTraining && precision_ == Precision::kBfloat16 &&
      graph_.nodes[made_by].has_norm) {
    c.sums = sums_[made_by].data();
    c.normed = raw_[made_by].data();
    c.values = values_.data() + graph_.nodes[made_by].channel;
    c.values_client = graph_.channels;
    parts_[made_by] = convolution_parts(precision_, c);
  }
  launches.add("convolutions", convolve_rows(precision_, c, launches.stream()), operations_of(node),
               bytes_of(node.out) +
                   bytes_of(node.in) *
                       (1 + (c.add != nullptr) + (c.mask != nullptr) + (c.normed != nullptr)));
}

void ResidualPasses::step(const StackedWeights& weights, const ClientSettings* settings,
                          Launches& launches) {
  end_back(weights, launches);
  const RowHeadGradient head{head_of(weights), dlogits_.data()};
  launches.add("rest", differentiate_linear(head, weight_gradients_.data(), launches.stream()));
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const GraphNode& node = graph_.nodes[i];
    const void* dy = norm_back(weights, i, launches);
    if (!node.fixed) kernel_back(i, dy, launches);
    if (node.input > 0) input_back(i, dy, PassMode::kTraining, launches);
  }
  RowStep step;
  step.clients = clients_;
  step.pieces = gradient_pieces(rows_);
  step.size = graph_.size;
  step.kernels = graph_.kernels;
  step.begin = graph_.working;
  step.trained = graph_.trained;
  step.kernel_gradients = kernel_gradients_.data();
  step.gradients = weight_gradients_.data();
  step.weights = weights.weights;
  step.velocity = weights.velocity;
  step.global = weights.global;
  step.settings = settings;
  launches.add("update", step_weights(step, launches.stream()));
  prepared_.reset();
}

}  // namespace fedsmooth
