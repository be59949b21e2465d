// A training that takes no time: a small network on a few of the built-in images.
#pragma once

#include <gtest/gtest.h>

#include "fedsmooth/data/sources.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/federated/train.h"
#include "fedsmooth/model/architectures.h"

namespace fedsmooth {

inline const Dataset& shapes() {
  static const Dataset data = make_shapes(Split::kTrain, 600, 0);
  return data;
}

inline const Network& small_network() {
  static const Network network = [] {
    ModelOptions options{"small"};
    set_default_normalization(options, "shapes", 3);
    return build_network(options, {3, 32, 32}, 10);
  }();
  return network;
}

inline LocalTask small_task(Method method) {
  LocalTask task{small_network(), shapes(), /*augment=*/true, method};
  task.local = {.steps = 3, .batch = 8, .learning_rate = 0.05};
  return task;
}

/// The same on a network of one layer, for what has nothing to do with networks.
inline LocalTask linear_task() {
  static const Network network{"linear", {3, 32, 32}, {{Layer::Kind::kLinear, "linear", 10}}};
  LocalTask task{network, shapes(), /*augment=*/false, Method::kStandard};
  task.local = {.steps = 2, .batch = 4, .learning_rate = 0.01};
  return task;
}

inline ServerState start(const LocalTask& task) {
  return {0, initial_weights(task.network, Key{1}), {}};
}

inline Partition partition(PartitionKind kind, int64_t clients = 12) {
  PartitionOptions o;
  o.kind = kind;
  o.clients = clients;
  o.samples_per_client = 40;
  return Partition(o, shapes().labels, 10, 0);
}

/// Those of client 3 of twelve.
inline std::vector<int64_t> images_of_client_3() {
  return partition(PartitionKind::kIid).images(3);
}

inline ServerState start() { return {0, initial_weights(small_network(), Key{1}), {}}; }

/// Bit for bit.
inline void expect_same(const Weights& a, const Weights& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
}

}  // namespace fedsmooth
