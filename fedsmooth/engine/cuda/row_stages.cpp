#include "fedsmooth/engine/cuda/row_stages.h"

#include <optional>
#include <utility>

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// Returns whether a stage computes anything before its pool.
bool computes(const Stage& stage) {
  return stage.op || stage.norm || stage.saved || stage.activation;
}

// Returns a stage's operation as a convolution or a subsample; none for a norm alone.
std::optional<Layer> operation_of(const Stage& stage) {
  if (stage.is_op(Kind::kLinear)) {
    Layer convolution = *stage.op;
    convolution.kind = Kind::kConv;
    convolution.kernel = stage.in[1];
    convolution.stride = 1;
    convolution.padding = 0;
    return convolution;
  }
  if (stage.op || stage.norm) return stage.op;
  Layer identity{Kind::kSubsample};
  identity.outputs = stage.in[0];
  return identity;
}

class Rewriting {
 public:
  explicit Rewriting(const std::vector<Stage>& stages) : stages_(stages) {}

  RowStages run() {
    for (size_t i = 0; i < stages_.size(); ++i) {
      const bool ends = leaves_mean_to_end(stages_, i);
      const bool rewritten = i > 0 && i + 1 < stages_.size();
      found_.of_mean |= ends;
      last_of_.push_back(add(stages_[i], rewritten, ends));
    }
    return std::move(found_);
  }

 private:
  // Adds the stages of one stage and returns the index of the last, or of its input's if it needs
  // none. With `ends` its pool is left to the linear layer.
  int add(Stage stage, bool rewritten, bool ends) {
    if (stage.input != Stage::kImages) stage.input = last_of_[stage.input];
    if (stage.saved) stage.saved = last_of_[*stage.saved];
    if (!rewritten) {
      // The linear layer at the end reads the map itself, whose mean it takes.
      if (stage.input != Stage::kImages) stage.in = found_.stages[stage.input].out;
      return push(std::move(stage));
    }
    if (!stage.op) {
      stage.op_tensor = stage.norm ? stage.norm_tensor : found_.stages[stage.input].op_tensor;
    }
    int last = stage.input;
    if (computes(stage)) {
      Stage core = stage;
      core.op = operation_of(stage);
      core.pool = core.dropout = std::nullopt;
      core.out = stage.map;
      last = push(std::move(core));
    }
    if (stage.pool && !ends) {
      Stage pool = alone(stage, last);
      pool.dropout = std::nullopt;
      pool.in = pool.map = stage.map;
      last = push(std::move(pool));
    }
    if (stage.dropout) {
      Stage dropout = alone(stage, last);
      dropout.pool = std::nullopt;
      dropout.in = dropout.map = stage.out;
      last = push(std::move(dropout));
    }
    return last;
  }

  // Returns a stage without what it computes before its pool, which reads the stage `input`.
  static Stage alone(Stage stage, int input) {
    stage.op = stage.norm = stage.activation = std::nullopt;
    stage.saved = std::nullopt;
    stage.input = input;
    return stage;
  }

  int push(Stage stage) {
    found_.stages.push_back(std::move(stage));
    return static_cast<int>(found_.stages.size()) - 1;
  }

  const std::vector<Stage>& stages_;
  RowStages found_;
  std::vector<int> last_of_;  // [stage]: what add() returned
};

}  // namespace

bool leaves_mean_to_end(const std::vector<Stage>& stages, size_t i) {
  return i + 2 == stages.size() && stages[i].is_pool(Kind::kAvgPool) && !stages[i].dropout;
}

RowStages row_stages(const std::vector<Stage>& stages) { return Rewriting(stages).run(); }

}  // namespace fedsmooth
