// Gradients of a network of family kRows: with respect to its images, and to its weights, with a
// step of SGD.
#include <algorithm>
#include <utility>

#include "fedsmooth/engine/cuda/kernels/rows/row_weights.h"
#include "fedsmooth/engine/cuda/row_passes.h"

namespace fedsmooth {
namespace {

// Returns the map whose gradient array serves `map` too: a map that is only added has the gradient
// of the sum.
int gradient_map(const GpuGraph& graph, int map) {
  int sum = -1;
  for (const GraphNode& node : graph.nodes) {
    if (node.input == map) return map;
    if (node.shortcut == map) sum = node.output;
  }
  return sum < 0 ? map : sum;
}

}  // namespace

void RowPasses::add_gradients() {
  const int64_t all_rows = int64_t{clients_} * rows_, bytes = value_bytes();
  int64_t largest = 0;
  for (size_t i = 0; i < maps_.size(); ++i) {
    largest = std::max(largest, maps_[i].size());
    gradient_at_.push_back(gradient_map(graph_, static_cast<int>(i)));
    gradients_.emplace_back(gradient_at_[i] == static_cast<int>(i) ? maps_[i].size() : 0);
  }
  made_by_.assign(maps_.size(), -1);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const GraphNode& node = nodes_[i];
    made_by_[node.output] = static_cast<int>(i);
    raw_.emplace_back(node.has_norm ? all_rows * node.out.row_size() * bytes : 0);
    group_values_.emplace_back(node.has_group_norm() ? all_rows * node.out.channels : 0);
    // Room for the largest number of parts: of the node's own convolution, of sum_map(), of the
    // gradient of a convolution that reads its output, or, for a group norm, one per row.
    int parts =
        std::max(convolution_parts(precision_, convolution_of(node)), map_parts(rows_, node.out));
    for (const GraphNode& reader : nodes_) {
      if (reader.input != node.output) continue;
      parts = std::max(parts, convolution_parts(precision_, back_of(reader)));
    }
    if (node.has_group_norm()) parts = std::max(parts, rows_);
    sums_.emplace_back(int64_t{clients_} * parts * 2 * node.out.channels);
  }
  parts_.assign(nodes_.size(), 0);
  dx_ = DeviceArray<uint8_t>(largest);
  dlogits_ = DeviceArray<float>(all_rows * graph_.classes);
  kernel_gradients_ = DeviceArray<float>(gradient_pieces(rows_) * clients_ * graph_.kernels);
  weight_gradients_ = DeviceArray<float>(clients_ * graph_.size);
  values_ = DeviceArray<NormValues>(int64_t{clients_} * graph_.channels);
  // Nothing writes the gradients of rows and weights that only fill up.
  dlogits_.clear(nullptr);
  kernel_gradients_.clear(nullptr);
  weight_gradients_.clear(nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "maps");
}

void RowPasses::end_back(const StackedWeights& weights, Launches& launches) {
  const GraphNode& last = nodes_.back();
  const RowHeadGradient g{head_of(weights), dlogits_.data(), last.relu, gradient_of(last.output)};
  launches.add("rest", differentiate_means(precision_, g, launches.stream()));
}

void RowPasses::differentiate_images(const StackedWeights& weights, Launches& launches) {
  prepare(weights, PassMode::kAnswers, launches);
  end_back(weights, launches);
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (i > 0 && pairs_[i - 1]) {
      pair_back(--i, launches);
      continue;
    }
    const void* dy = norm_back(weights, i, PassMode::kAnswers, launches);
    input_back(i, dy, PassMode::kAnswers, launches);
  }
}

NormGradient RowPasses::norm_gradient(const StackedWeights& weights, size_t i) const {
  const GraphNode& node = nodes_[i];
  NormGradient g;
  g.clients = clients_;
  g.rows = rows_;
  g.map = node.out;
  g.x = node.has_norm ? raw_[i].data() : nullptr;
  g.dy = gradient_of(node.output);
  g.sums = sums_[i].data();
  g.weights = norm_of(weights, node);
  g.gradients = weight_gradients_.data();
  g.values = values_.data() + node.channel;
  g.values_client = graph_.channels;
  g.dx = dx_.data();
  return g;
}

// Returns the gradient of the map before the node's norm. In mode kAnswers batch norms are folded
// into kernels.
const void* RowPasses::norm_back(const StackedWeights& weights, size_t i, PassMode mode,
                                 Launches& launches) {
  const GraphNode& node = nodes_[i];
  if (node.has_group_norm()) return group_norm_back(weights, i, mode, launches);
  const void* dy = gradient_of(node.output);
  if (mode == PassMode::kAnswers || (!node.has_norm && !node.has_bias)) return dy;
  NormGradient g = norm_gradient(weights, i);
  g.parts = std::exchange(parts_[i], 0);
  launches.add("norms", differentiate_norm(precision_, g, launches.stream()), 0,
               (node.has_norm ? (g.parts > 0 ? 3 : 5) : 1) * bytes_of(node.out));
  return node.has_norm ? dx_.data() : dy;
}

const void* RowPasses::group_norm_back(const StackedWeights& weights, size_t i, PassMode mode,
                                       Launches& launches) {
  const GraphNode& node = nodes_[i];
  const bool trains = mode == PassMode::kTraining;
  GroupNormGradient g;
  g.clients = clients_;
  g.rows = rows_;
  g.map = node.out;
  g.groups = node.groups;
  g.x = raw_[i].data();
  g.dy = gradient_of(node.output);
  g.weights = norm_of(weights, node);
  g.values = group_values_[i].data();
  g.sums = trains ? sums_[i].data() : nullptr;
  g.dx = dx_.data();
  launches.add("norms", differentiate_group_norm(precision_, g, launches.stream()), 0,
               3 * bytes_of(node.out));
  if (trains) {
    NormGradient sums = norm_gradient(weights, i);
    sums.parts = rows_;
    sums.values = nullptr;
    launches.add("norms", add_norm_gradients(sums, launches.stream()));
  }
  return dx_.data();
}

void RowPasses::kernel_back(size_t i, const void* dy, Launches& launches) {
  const GraphNode& node = nodes_[i];
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

// Returns the convolution that maps the gradient of a node's output to that of its input.
RowConvolution RowPasses::back_of(const GraphNode& node) const {
  RowConvolution c = convolution_of(node);
  std::swap(c.in, c.out);
  c.stride = 1;
  c.spread = node.stride;
  c.padding = node.kernel - 1 - node.padding;
  return c;
}

// Convolutions that read the same map add their gradients one after another, in reverse order of
// the list. If the map is also added as a shortcut, that gradient is the first summand. The last
// convolution applies the map's ReLU.
RowConvolution RowPasses::input_gradient_of(size_t i, const void* dy) const {
  const GraphNode& node = nodes_[i];
  bool begins = true;
  const void* add = nullptr;
  for (size_t j = 0; j < nodes_.size(); ++j) {
    const GraphNode& other = nodes_[j];
    if (j > i && other.input == node.input) begins = false;
    if (other.shortcut == node.input) add = gradient_of(other.output);
  }
  RowConvolution c = back_of(node);
  c.x = dy;
  c.weights = turned_.data() + node.weight * value_bytes();
  c.y = gradient_of(node.input);
  c.add = begins ? add : c.y;
  const int made_by = made_by_[node.input];
  if (ends_gradient(i) && made_by >= 0 && nodes_[made_by].relu) {
    c.mask = maps_[node.input].data();
  }
  return c;
}

// Whether node i is the last that adds to the gradient of its input.
bool RowPasses::ends_gradient(size_t i) const {
  for (size_t j = 0; j < i; ++j) {
    if (nodes_[j].input == nodes_[i].input) return false;
  }
  return true;
}

void RowPasses::input_back(size_t i, const void* dy, PassMode mode, Launches& launches) {
  const GraphNode& node = nodes_[i];
  RowConvolution c = input_gradient_of(i, dy);
  const int made_by = made_by_[node.input];
  if (ends_gradient(i) && mode == PassMode::kTraining && precision_ == Precision::kBfloat16 &&
      nodes_[made_by].has_batch_norm()) {
    c.sums = sums_[made_by].data();
    c.normed = raw_[made_by].data();
    c.values = values_.data() + nodes_[made_by].channel;
    c.values_client = graph_.channels;
    parts_[made_by] = convolution_parts(precision_, c);
  }
  launches.add("convolutions", convolve_rows(precision_, c, launches.stream()), operations_of(node),
               bytes_of(node.out) +
                   bytes_of(node.in) *
                       (1 + (c.add != nullptr) + (c.mask != nullptr) + (c.normed != nullptr)));
}

// Computes the gradients of nodes i and i + 1 in one kernel. The gradient of the map between them
// is not stored.
void RowPasses::pair_back(size_t i, Launches& launches) {
  const GraphNode& node = nodes_[i];
  RowPair pair{input_gradient_of(i + 1, gradient_of(nodes_[i + 1].output)),
               input_gradient_of(i, nullptr)};
  pair.first.y = nullptr;
  const int masks = (pair.first.mask != nullptr) + (pair.second.mask != nullptr);
  launches.add("convolutions", convolve_pair(pair, launches.stream()), 2 * operations_of(node),
               (2 + masks) * bytes_of(node.out));
}

void RowPasses::step(const StackedWeights& weights, const ClientSettings* settings,
                     Launches& launches) {
  end_back(weights, launches);
  const RowHeadGradient head{head_of(weights), dlogits_.data()};
  launches.add("rest", differentiate_linear(head, weight_gradients_.data(), launches.stream()));
  for (size_t i = nodes_.size(); i-- > 0;) {
    const GraphNode& node = nodes_[i];
    const void* dy = norm_back(weights, i, PassMode::kTraining, launches);
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
