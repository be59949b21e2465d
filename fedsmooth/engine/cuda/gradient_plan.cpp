#include "fedsmooth/engine/cuda/gradient_plan.h"

namespace fedsmooth {
namespace {

// Plans the gradient of one map after another, in reverse order of the maps' nodes, so that the
// arrays of sums are known.
class Planner {
 public:
  explicit Planner(const GpuGraph& graph) : graph_(graph) {
    const int maps = static_cast<int>(graph.maps.size()), nodes = count();
    plan_.array.resize(maps);
    plan_.made_by.assign(maps, -1);
    plan_.inputs.resize(nodes);
    plan_.shortcuts.resize(nodes);
    for (int map = 0; map < maps; ++map) plan_.array[map] = map;
    for (int i = 0; i < nodes; ++i) plan_.made_by[graph.nodes[i].output] = i;
  }

  GradientPlan run() {
    for (int i = count(); i-- > 0;) plan_map(graph_.nodes[i].output);
    plan_map(0);
    return std::move(plan_);
  }

 private:
  int count() const { return static_cast<int>(graph_.nodes.size()); }

  void plan_map(int map) {
    int begun = -1;  // map whose array has the sum so far; -1: none has
    GradientPlan::Step* last = nullptr;
    const GraphNode* sum = nullptr;
    for (int i = count(); i-- > 0;) {
      const GraphNode& node = graph_.nodes[i];
      if (node.shortcut == map) {
        last = &plan_.shortcuts[i];
        last->add = begun;
        // The first part is the sum's own gradient, which the next step adds.
        last->writes = begun >= 0;
        begun = last->writes ? map : plan_.array[node.output];
        sum = &node;
      }
      if (node.input == map) {
        last = &plan_.inputs[i];
        last->add = begun;
        begun = map;
      }
    }
    if (last == nullptr) return;
    const int made_by = plan_.made_by[map];
    last->last = true;
    last->mask = made_by >= 0 && graph_.nodes[made_by].relu;
    if (last->writes) return;
    if (last->mask) {
      last->writes = true;
    } else {
      plan_.array[map] = plan_.array[sum->output];
    }
  }

  const GpuGraph& graph_;
  GradientPlan plan_;
};

}  // namespace

GradientPlan plan_gradients(const GpuGraph& graph) { return Planner(graph).run(); }

}  // namespace fedsmooth
