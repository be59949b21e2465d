// The order in which the gradients of a graph's maps are added up. Nodes go backward in reverse
// order. A node that reads a map writes its part of the map's gradient when its turn comes; a node
// that adds a map as its shortcut passes its own gradient on. The first writes, later ones add, and
// the last applies the ReLU of the node that made the map.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/graph.h"

namespace fedsmooth {

struct GradientPlan {
  /// What a node does to the gradient of a map that it reads or adds.
  struct Step {
    int add = -1;        // number of the map whose gradient is added; -1: none
    bool mask = false;   // applies the ReLU
    bool last = false;   // completes the gradient
    bool writes = true;  // false: its part is added by a later step, or the array is shared
  };

  std::vector<int> array;       // [map]: map in whose array the gradient is
  std::vector<int> made_by;     // [map]: the node that writes it; -1: the image
  std::vector<Step> inputs;     // [node]: for the map that it reads
  std::vector<Step> shortcuts;  // [node]: for the map that it adds, before the one that it reads
};

GradientPlan plan_gradients(const GpuGraph& graph);

}  // namespace fedsmooth
