// Plans how the gradients of a graph's maps are added up in the backward pass, which visits nodes
// in reverse order. A map's gradient has a part from every node that reads the map and from every
// node that adds it as its shortcut; the part of a shortcut is the gradient of that node's output.
// The first step writes its part, later ones add theirs, and the last one also applies the ReLU of
// the node that made the map.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/graph.h"

namespace fedsmooth {

struct GradientPlan {
  /// A node's contribution to the gradient of a map that it reads or adds.
  struct Step {
    int add = -1;        // number of the map whose array the step adds to its part; -1: none
    bool mask = false;   // the step applies the ReLU
    bool last = false;   // the step completes the gradient
    bool writes = true;  // false: a later step adds this part, or maps share one array
  };

  std::vector<int> array;       // [map]: number of the map whose array has its gradient
  std::vector<int> made_by;     // [map]: number of the node that writes it; -1: the images
  std::vector<Step> inputs;     // [node]: step for the map that it reads
  std::vector<Step> shortcuts;  // [node]: step for the map that it adds, before that of `inputs`
};

/// Returns the plan for all maps of a graph.
GradientPlan plan_gradients(const GpuGraph& graph);

}  // namespace fedsmooth
