// Norms of a network of family kRows, forward and backward. A norm either follows the convolution
// of its node, or is alone in a node and reads a map that other nodes may read, too.
#include <algorithm>
#include <utility>

#include "fedsmooth/engine/cuda/row_passes.h"

namespace fedsmooth {

// Runs a node that is a norm alone.
void RowPasses::run_norm(const StackedWeights& weights, size_t i, PassMode mode,
                         Launches& launches) {
  const GraphNode& node = nodes_[i];
  if (node.has_group_norm()) return take_group_norm(weights, i, launches);
  if (mode == PassMode::kAnswers) return apply_batch_norm(i, launches);
  const int made_by = plan_.made_by[node.input];
  if (made_by >= 0 && feeds_norm(made_by)) {
    const int parts = convolution_parts(precision_, convolution_of(nodes_[made_by]));
    return take_batch_norm(weights, i, sums_[made_by].data(), parts, launches);
  }
  const MapSums sums{clients_, rows_, node.in, before_norm(i), sums_[i].data()};
  launches.add("norms", sum_map(precision_, sums, launches.stream()), 0, bytes_of(node.in));
  take_batch_norm(weights, i, sums.sums, map_parts(rows_, node.in), launches);
}

// Returns whether a node is a convolution whose output is read by a batch norm that is a node of
// its own. In training such a convolution also computes the sums for the norm.
bool RowPasses::feeds_norm(size_t i) const {
  const GraphNode& node = nodes_[i];
  return node.convolves() && !node.has_norm &&
         std::ranges::any_of(nodes_, [&](const GraphNode& reader) {
           return reader.input == node.output && !reader.convolves() && reader.has_batch_norm();
         });
}

NormStatistics RowPasses::statistics_of(const StackedWeights& weights, size_t i) const {
  const GraphNode& node = nodes_[i];
  NormStatistics s;
  s.clients = clients_;
  s.rows = rows_;
  s.map = node.out;
  s.weights = norm_of(weights, node);
  s.values = values_.data() + node.channel;
  s.values_client = graph_.channels;
  return s;
}

void RowPasses::take_batch_norm(const StackedWeights& weights, size_t i, const float* sums,
                                int parts, Launches& launches) {
  NormStatistics s = statistics_of(weights, i);
  s.sums = sums;
  s.parts = parts;
  launches.add("norms", compute_statistics(s, launches.stream()));
  apply_batch_norm(i, launches);
}

void RowPasses::apply_batch_norm(size_t i, Launches& launches) {
  const GraphNode& node = nodes_[i];
  const NormApply apply{clients_,
                        rows_,
                        node.out,
                        before_norm(i),
                        node.shortcut < 0 ? nullptr : maps_[node.shortcut].data(),
                        node.relu,
                        values_.data() + node.channel,
                        graph_.channels,
                        maps_[node.output].data()};
  launches.add("norms", apply_norm(precision_, apply, launches.stream()), 0,
               (node.shortcut < 0 ? 2 : 3) * bytes_of(node.out));
}

void RowPasses::take_group_norm(const StackedWeights& weights, size_t i, Launches& launches) {
  const GraphNode& node = nodes_[i];
  GroupNorm n;
  n.clients = clients_;
  n.rows = rows_;
  n.map = node.out;
  n.groups = node.groups;
  n.x = before_norm(i);
  n.add = node.shortcut < 0 ? nullptr : maps_[node.shortcut].data();
  n.relu = node.relu;
  n.weights = norm_of(weights, node);
  n.values = gradients_.empty() ? nullptr : group_values_[i].data();
  n.y = maps_[node.output].data();
  launches.add("norms", apply_group_norm(precision_, n, launches.stream()), 0,
               (node.shortcut < 0 ? 2 : 3) * bytes_of(node.out));
}

// Returns the arguments that norms and biases share. A norm that is alone in its node writes its
// part of the gradient of the map that it reads; a norm behind a convolution writes the gradient of
// the convolution's output.
NormGradient RowPasses::norm_gradient(const StackedWeights& weights, size_t i) const {
  const GraphNode& node = nodes_[i];
  NormGradient g;
  g.clients = clients_;
  g.rows = rows_;
  g.map = node.out;
  g.x = node.has_norm ? before_norm(i) : nullptr;
  g.dy = gradient_of(node.output);
  g.sums = sums_[i].data();
  g.weights = norm_of(weights, node);
  g.gradients = weight_gradients_.data();
  g.values = values_.data() + node.channel;
  g.values_client = graph_.channels;
  g.dx = dx_.data();
  if (node.convolves()) return g;
  g.add = added_by(plan_.inputs[i]);
  g.mask = plan_.inputs[i].mask;
  // If the node reads the images, this is their gradient, which is not read in training.
  g.dx = gradient_of(node.input);
  return g;
}

// Computes the gradients of a node's norm and bias, and returns the gradient of the map that the
// norm reads. That is the gradient of the output if there is no norm, or if it is a batch norm
// behind a convolution in mode kAnswers, which is folded into the kernel.
const void* RowPasses::norm_back(const StackedWeights& weights, size_t i, PassMode mode,
                                 Launches& launches) {
  const GraphNode& node = nodes_[i];
  if (node.has_group_norm()) return group_norm_back(weights, i, mode, launches);
  if (node.has_norm) return batch_norm_back(weights, i, mode, launches);
  const void* dy = gradient_of(node.output);
  if (mode == PassMode::kTraining && node.has_bias) bias_back(weights, i, dy, launches);
  return dy;
}

const void* RowPasses::batch_norm_back(const StackedWeights& weights, size_t i, PassMode mode,
                                       Launches& launches) {
  const GraphNode& node = nodes_[i];
  const bool answers = mode == PassMode::kAnswers;
  if (answers && node.convolves()) return gradient_of(node.output);
  NormGradient g = norm_gradient(weights, i);
  g.answers = answers;
  if (node.has_bias) g.conv_bias = node.bias;
  if (!answers) g.parts = std::exchange(parts_[i], 0);
  launches.add("norms", differentiate_norm(precision_, g, launches.stream()), 0,
               (answers || g.parts > 0 ? 3 : 5) * bytes_of(node.out));
  return g.dx;
}

const void* RowPasses::group_norm_back(const StackedWeights& weights, size_t i, PassMode mode,
                                       Launches& launches) {
  const GraphNode& node = nodes_[i];
  const bool trains = mode == PassMode::kTraining;
  NormGradient sums = norm_gradient(weights, i);
  GroupNormGradient g;
  g.clients = clients_;
  g.rows = rows_;
  g.map = node.out;
  g.groups = node.groups;
  g.x = sums.x;
  g.dy = sums.dy;
  g.weights = sums.weights;
  g.values = group_values_[i].data();
  g.sums = trains ? sums_[i].data() : nullptr;
  g.add = sums.add;
  g.mask = sums.mask;
  g.dx = sums.dx;
  launches.add("norms", differentiate_group_norm(precision_, g, launches.stream()), 0,
               3 * bytes_of(node.out));
  if (!trains) return g.dx;
  sums.parts = rows_;
  sums.values = nullptr;
  launches.add("norms", add_norm_gradients(sums, launches.stream()));
  if (node.has_bias) bias_back(weights, i, g.dx, launches);
  return g.dx;
}

// Computes the gradient of a convolution's bias: the sum of dy, the gradient of its output.
void RowPasses::bias_back(const StackedWeights& weights, size_t i, const void* dy,
                          Launches& launches) {
  NormGradient g = norm_gradient(weights, i);
  g.x = nullptr;
  g.dy = dy;
  g.weights.bias = nodes_[i].bias;
  g.parts = std::exchange(parts_[i], 0);
  launches.add("norms", differentiate_norm(precision_, g, launches.stream()), 0,
               bytes_of(nodes_[i].out));
}

}  // namespace fedsmooth
