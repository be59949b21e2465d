// Passes of a network of family kRows for many clients at once. The object owns all maps and
// launches the kernels that fill them. In training, batch norm uses the statistics of each client's
// own rows; in mode kAnswers, the running ones. Group norm always uses those of each row.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fedsmooth/engine/cuda/gradient_plan.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_group_norm.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_head.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_pair.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_pool.h"
#include "fedsmooth/engine/cuda/row_network.h"

namespace fedsmooth {

class RowPasses : public WavePasses {
 public:
  /// Without `gradients` only run() in mode kAnswers may be called. `device` must outlive it.
  RowPasses(const RowNetwork& device, Precision precision, int clients, int rows, bool gradients);

  void* input() const override { return maps_[0].data(); }
  float* logits() const override { return logits_.data(); }
  void* output_gradient() const override { return dlogits_.data(); }
  Precision output_precision() const override { return Precision::kFloat32; }
  const void* input_gradient() const override { return gradients_[0].data(); }

  void set_dropout(const DropoutDraws& draws) override { draws_ = draws; }
  void forget_weights() override { prepared_.reset(); }
  void run(const StackedWeights& weights, PassMode mode, Launches& launches) override;
  void differentiate_images(const StackedWeights& weights, Launches& launches) override;
  void step(const StackedWeights& weights, const ClientSettings* settings,
            Launches& launches) override;

 private:
  void add_gradients();
  void prepare(const StackedWeights& weights, PassMode mode, Launches& launches);
  void run_node(const StackedWeights& weights, size_t i, PassMode mode, Launches& launches);
  void run_convolution(const StackedWeights& weights, size_t i, PassMode mode, Launches& launches);
  void run_norm(const StackedWeights& weights, size_t i, PassMode mode, Launches& launches);
  void run_pair(size_t i, Launches& launches);
  bool feeds_norm(size_t i) const;
  void take_batch_norm(const StackedWeights& weights, size_t i, const float* sums, int parts,
                       Launches& launches);
  void apply_batch_norm(size_t i, Launches& launches);
  void take_group_norm(const StackedWeights& weights, size_t i, Launches& launches);
  void end_back(const StackedWeights& weights, Launches& launches);
  void node_back(const StackedWeights& weights, size_t i, PassMode mode, Launches& launches);
  void shortcut_back(size_t i, PassMode mode, Launches& launches);
  void pool_back(size_t i, PassMode mode, Launches& launches);
  void dropout_back(size_t i, PassMode mode, Launches& launches);
  void pair_back(size_t i, Launches& launches);
  const void* norm_back(const StackedWeights& weights, size_t i, PassMode mode, Launches& launches);
  const void* batch_norm_back(const StackedWeights& weights, size_t i, PassMode mode,
                              Launches& launches);
  const void* group_norm_back(const StackedWeights& weights, size_t i, PassMode mode,
                              Launches& launches);
  void bias_back(const StackedWeights& weights, size_t i, const void* dy, Launches& launches);
  NormGradient norm_gradient(const StackedWeights& weights, size_t i) const;
  NormStatistics statistics_of(const StackedWeights& weights, size_t i) const;
  void kernel_back(size_t i, const void* dy, Launches& launches);
  void input_back(size_t i, const void* dy, PassMode mode, Launches& launches);
  RowConvolution convolution_of(const GraphNode& node) const;
  RowConvolution answer_of(size_t i) const;
  RowConvolution input_gradient_of(size_t i, const void* dy) const;
  RowPool pool_of(const GraphNode& node) const;
  RowDropout dropout_of(const GraphNode& node, PassMode mode) const;
  int most_parts(const GraphNode& node) const;
  RowHead head_of(const StackedWeights& weights) const;
  NormWeights norm_of(const StackedWeights& weights, const GraphNode& node) const;
  int64_t value_bytes() const { return precision_ == Precision::kBfloat16 ? 2 : 4; }
  double bytes_of(const MapShape& map) const;
  double operations_of(const GraphNode& node) const;
  /// Returns the map that a node's norm reads. Without gradients, the output of a convolution and
  /// of the norm behind it share one array.
  void* before_norm(size_t i) const {
    if (!nodes_[i].convolves()) return maps_[nodes_[i].input].data();
    return gradients_.empty() ? maps_[nodes_[i].output].data() : raw_[i].data();
  }
  /// Returns the gradient of a map.
  void* gradient_of(int map) const { return gradients_[plan_.array[map]].data(); }
  /// Returns the gradient that a step adds to its part; null: none.
  const void* added_by(const GradientPlan::Step& step) const {
    return step.add < 0 ? nullptr : gradients_[step.add].data();
  }

  const RowNetwork& device_;
  const GpuGraph& graph_;
  std::span<const GraphNode> nodes_;  // all but the head
  Precision precision_;
  int clients_, rows_;
  GradientPlan plan_;
  DropoutDraws draws_;                // of passes in mode kTraining
  std::vector<bool> pairs_;           // [node]: it and the next run as one kernel in kAnswers
  std::optional<PassMode> prepared_;  // mode for which kernels_ and turned_ were last prepared
  std::vector<int> parts_;  // [node]: parts of sums_ that a convolution has written; 0: none
  std::vector<DeviceArray<uint8_t>> maps_, gradients_;  // in the working precision
  std::vector<DeviceArray<uint8_t>> raw_;  // [node]: map between a convolution and its norm
  DeviceArray<uint8_t> dx_;                // gradient of one of raw_, until it is used
  DeviceArray<uint8_t> kernels_, turned_;
  DeviceArray<float> shift_, means_, logits_, dlogits_, kernel_gradients_, weight_gradients_;
  DeviceArray<float> wide_room_;          // see RowGradient::room
  std::vector<DeviceArray<float>> sums_;  // [node]
  DeviceArray<NormValues> values_;
  std::vector<DeviceArray<GroupValues>> group_values_;  // [node]
};

}  // namespace fedsmooth
