#include "fedsmooth/federated/server_optimizers.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/federated/server_rules.h"

namespace fedsmooth {
namespace {

ServerOptions settled(ServerOptions options, const ServerOptimizer& rule) {
  if (options.learning_rate == 0.0) options.learning_rate = rule.learning_rate.value_or(0.0);
  return options;
}

}  // namespace

Registry<ServerOptimizer>& server_optimizers() {
  static Registry<ServerOptimizer> all(
      "server.optimizer",
      {average_server(), momentum_server(), adam_server(), yogi_server(), adagrad_server()});
  return all;
}

void check_server_options(const ServerOptions& options) {
  const ServerOptimizer& rule = server_optimizers().find(options.optimizer);
  if (settled(options, rule).learning_rate <= 0) {
    throw Error("server.learning_rate: server.optimizer={:?} needs one; try 0.01", rule.name);
  }
}

void server_step(const ServerOptions& given, const Network& network, const Weights& average,
                 Weights& global, NamedWeights& kept) {
  const ServerOptimizer& rule = server_optimizers().find(given.optimizer);
  const ServerOptions options = settled(given, rule);
  for (const auto& [name, first] : rule.state) {
    if (kept.contains(name)) continue;
    for (const Array& w : global) {
      kept[name].push_back(Array::full(w.sizes(), static_cast<float>(first(options))));
    }
  }
  const std::vector<Parameter> known = parameters(network);
  for (size_t i = 0; i < global.size(); ++i) {
    if (!known[i].trained) {
      global[i] = average[i];
      continue;
    }
    global[i] = global[i].clone();
    ServerStep step{global[i].count(), average[i].floats(), global[i].floats(), {}};
    for (const auto& [name, first] : rule.state) {
      Array& state = kept[name][i];
      state = state.clone();
      step.state.push_back(state.floats());
    }
    rule.step(options, step);
  }
}

}  // namespace fedsmooth
