// Gradients of a network of family kRows: with respect to its images, and to its weights, with a
// step of SGD.
#include <algorithm>
#include <utility>

#include "fedsmooth/engine/cuda/kernels/rows/row_weights.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"
#include "fedsmooth/engine/cuda/row_passes.h"

namespace fedsmooth {

void RowPasses::add_gradients() {
  const int64_t all_rows = int64_t{clients_} * rows_, bytes = value_bytes();
  int64_t largest = 0, room = 0;
  for (size_t i = 0; i < maps_.size(); ++i) {
    largest = std::max(largest, maps_[i].size());
    gradients_.emplace_back(plan_.array[i] == static_cast<int>(i) ? maps_[i].size() : 0);
  }
  for (const GraphNode& node : nodes_) {
    const bool has_raw = node.convolves() && node.has_norm;
    raw_.emplace_back(has_raw ? all_rows * node.out.row_size() * bytes : 0);
    group_values_.emplace_back(node.has_group_norm() ? all_rows * node.out.channels : 0);
    if (node.wide) room = std::max(room, wide_gradient_room(convolution_of(node)));
    sums_.emplace_back(int64_t{clients_} * most_parts(node) * 2 * node.out.channels);
  }
  parts_.assign(nodes_.size(), 0);
  dx_ = DeviceArray<uint8_t>(largest);
  dlogits_ = DeviceArray<float>(all_rows * graph_.classes);
  kernel_gradients_ = DeviceArray<float>(gradient_pieces(rows_) * clients_ * graph_.kernels);
  weight_gradients_ = DeviceArray<float>(clients_ * graph_.size);
  wide_room_ = DeviceArray<float>(precision_ == Precision::kBfloat16 ? room : 0);
  // Nothing writes the gradients of rows and weights that only fill up.
  dlogits_.clear(nullptr);
  kernel_gradients_.clear(nullptr);
  weight_gradients_.clear(nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "maps");
}

// Returns the largest number of parts of a node's sums: of its own convolution, of sum_map(), of
// the gradient of a convolution that reads its output, or, for a group norm, one per row.
int RowPasses::most_parts(const GraphNode& node) const {
  if (!node.convolves() && !node.has_norm) return 0;
  int parts = map_parts(rows_, node.out);
  if (node.convolves()) {
    parts = std::max(parts, convolution_parts(precision_, convolution_of(node)));
  }
  for (const GraphNode& reader : nodes_) {
    if (reader.input != node.output || !reader.convolves()) continue;
    parts = std::max(parts, convolution_parts(precision_, backward_of(convolution_of(reader))));
  }
  return node.has_group_norm() ? std::max(parts, rows_) : parts;
}

void RowPasses::end_back(const StackedWeights& weights, Launches& launches) {
  const RowHeadGradient g{head_of(weights), dlogits_.data(), plan_.inputs.back().mask,
                          gradient_of(graph_.head().input)};
  launches.add("rest", differentiate_means(precision_, g, launches.stream()));
}

void RowPasses::differentiate_images(const StackedWeights& weights, Launches& launches) {
  prepare(weights, PassMode::kAnswers, launches);
  end_back(weights, launches);
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (i > 0 && pairs_[i - 1]) {
      shortcut_back(i, PassMode::kAnswers, launches);
      pair_back(--i, launches);
    } else {
      node_back(weights, i, PassMode::kAnswers, launches);
    }
  }
}

// Computes a node's gradients from that of its output. In training nothing needs the gradient of
// the images.
void RowPasses::node_back(const StackedWeights& weights, size_t i, PassMode mode,
                          Launches& launches) {
  const GraphNode& node = nodes_[i];
  const bool trains = mode == PassMode::kTraining;
  shortcut_back(i, mode, launches);
  if (node.has_pool()) return pool_back(i, mode, launches);
  if (node.has_dropout()) return dropout_back(i, mode, launches);
  const void* dy = norm_back(weights, i, mode, launches);
  if (!node.convolves()) return;
  if (trains && !node.fixed) kernel_back(i, dy, launches);
  if (node.input > 0 || !trains) input_back(i, dy, mode, launches);
}

// Adds the gradient of a node's output to that of the map that it adds. A mean over windows of one
// pixel is the identity, whose gradient is added.
void RowPasses::shortcut_back(size_t i, PassMode mode, Launches& launches) {
  const GraphNode& node = nodes_[i];
  const GradientPlan::Step& step = plan_.shortcuts[i];
  if (node.shortcut < 0 || !step.writes) return;
  if (node.shortcut == 0 && mode == PassMode::kTraining) return;
  RowPoolGradient g;
  g.pool = {clients_,      rows_, node.out, node.out, /*kernel=*/1, /*stride=*/1,
            /*means=*/true};
  g.pool.x = g.pool.y = maps_[node.shortcut].data();
  g.dy = gradient_of(node.output);
  g.add = added_by(step);
  g.mask = step.mask;
  g.dx = gradient_of(node.shortcut);
  launches.add("pooling", differentiate_pool(precision_, g, launches.stream()), 0,
               (2 + (g.add != nullptr) + g.mask) * bytes_of(node.out));
}

void RowPasses::pool_back(size_t i, PassMode mode, Launches& launches) {
  const GraphNode& node = nodes_[i];
  if (node.input == 0 && mode == PassMode::kTraining) return;
  RowPoolGradient g;
  g.pool = pool_of(node);
  g.dy = gradient_of(node.output);
  g.add = added_by(plan_.inputs[i]);
  g.mask = plan_.inputs[i].mask;
  g.dx = gradient_of(node.input);
  launches.add("pooling", differentiate_pool(precision_, g, launches.stream()), 0,
               (2 + (g.add != nullptr)) * bytes_of(node.in) + 2 * bytes_of(node.out));
}

void RowPasses::dropout_back(size_t i, PassMode mode, Launches& launches) {
  const GraphNode& node = nodes_[i];
  if (node.input == 0 && mode == PassMode::kTraining) return;
  RowDropout d = dropout_of(node, mode);
  d.x = gradient_of(node.output);
  d.add = added_by(plan_.inputs[i]);
  d.mask = plan_.inputs[i].mask ? maps_[node.input].data() : nullptr;
  d.y = gradient_of(node.input);
  launches.add("dropout", drop_values(precision_, d, launches.stream()), 0,
               (2 + (d.add != nullptr) + (d.mask != nullptr)) * bytes_of(node.out));
}

void RowPasses::kernel_back(size_t i, const void* dy, Launches& launches) {
  const GraphNode& node = nodes_[i];
  RowGradient g;
  g.forward = convolution_of(node);
  g.forward.x = maps_[node.input].data();
  g.dy = dy;
  if (node.wide) {  // its gradient is not in pieces
    g.pieces = 1;
    g.room = wide_room_.data();
    g.gradient = weight_gradients_.data() + node.weight;
    g.gradient_client = graph_.size;
  } else {
    g.pieces = gradient_pieces(rows_);
    g.gradient = kernel_gradients_.data() + node.weight;
    g.gradient_client = graph_.kernels;
  }
  launches.add("kernel gradients", differentiate_kernel(precision_, g, launches.stream()),
               operations_of(node), bytes_of(node.in) + bytes_of(node.out));
}

RowConvolution RowPasses::input_gradient_of(size_t i, const void* dy) const {
  const GraphNode& node = nodes_[i];
  RowConvolution c = backward_of(convolution_of(node));
  c.x = dy;
  c.weights = turned_.data() + node.weight * value_bytes();
  c.y = gradient_of(node.input);
  c.add = added_by(plan_.inputs[i]);
  if (plan_.inputs[i].mask) c.mask = maps_[node.input].data();
  return c;
}

void RowPasses::input_back(size_t i, const void* dy, PassMode mode, Launches& launches) {
  const GraphNode& node = nodes_[i];
  RowConvolution c = input_gradient_of(i, dy);
  const int made_by = plan_.made_by[node.input];
  if (plan_.inputs[i].last && mode == PassMode::kTraining && precision_ == Precision::kBfloat16 &&
      nodes_[made_by].has_batch_norm()) {
    c.sums = sums_[made_by].data();
    c.normed = before_norm(made_by);
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
    node_back(weights, i, PassMode::kTraining, launches);
  }
  RowStep step;
  step.clients = clients_;
  step.pieces = gradient_pieces(rows_);
  step.size = graph_.size;
  step.kernels = graph_.kernels;
  step.begin = graph_.wide;
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
