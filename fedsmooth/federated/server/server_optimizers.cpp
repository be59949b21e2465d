#include "fedsmooth/federated/server/server_optimizers.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/federated/server/server_rules.h"

namespace fedsmooth {
namespace {

constexpr const char* kLateMean = "late_mean";

bool averages_late(const ServerOptions& options, int64_t round) {
  return options.average_from > 0 && round >= options.average_from;
}

ServerOptions settled(ServerOptions options, const ServerOptimizer& rule) {
  if (options.learning_rate == 0.0) options.learning_rate = rule.learning_rate.value_or(0.0);
  return options;
}

// Gives `kept` the first values of what the rule keeps and `kept` does not have.
void begin_state(const ServerOptimizer& rule, const ServerOptions& options, const Weights& global,
                 NamedWeights& kept) {
  for (const auto& [name, first] : rule.state) {
    if (kept.contains(name)) continue;
    for (const Array& w : global) {
      kept[name].push_back(Array::full(w.sizes(), static_cast<float>(first(options))));
    }
  }
}

// Replaces tensor i of `weights` and of the rule's state by copies, for a step to write to.
ServerStep step_on_copies(const ServerOptimizer& rule, size_t i, Weights& weights,
                          NamedWeights& kept) {
  weights[i] = weights[i].clone();
  ServerStep step{weights[i].count(), nullptr, weights[i].floats(), {}};
  for (const auto& [name, first] : rule.state) {
    Array& state = kept[name][i];
    state = state.clone();
    step.state.push_back(state.floats());
  }
  return step;
}

}  // namespace

Registry<ServerOptimizer>& server_optimizers() {
  static Registry<ServerOptimizer> all(
      "server.optimizer", {average_server(), momentum_server(), acg_server(), adam_server(),
                           yogi_server(), adagrad_server()});
  return all;
}

void check_server_options(const ServerOptions& options) {
  const ServerOptimizer& rule = server_optimizers().find(options.optimizer);
  if (settled(options, rule).learning_rate <= 0) {
    throw Error("server.learning_rate: server.optimizer={:?} needs one; try 0.01", rule.name);
  }
}

std::vector<std::string> names_kept(const ServerOptions& options, int64_t round) {
  std::vector<std::string> names;
  for (const auto& state : server_optimizers().find(options.optimizer).state) {
    names.push_back(state.name);
  }
  if (averages_late(options, round)) names.emplace_back(kLateMean);
  return names;
}

void begin_server(const ServerOptions& given, const Weights& global, NamedWeights& kept) {
  const ServerOptimizer& rule = server_optimizers().find(given.optimizer);
  begin_state(rule, settled(given, rule), global, kept);
}

void server_step(const ServerOptions& given, const Network& network, const Weights& average,
                 Weights& global, NamedWeights& kept) {
  const ServerOptimizer& rule = server_optimizers().find(given.optimizer);
  const ServerOptions options = settled(given, rule);
  begin_state(rule, options, global, kept);
  const std::vector<Parameter> known = parameters(network);
  for (size_t i = 0; i < global.size(); ++i) {
    if (!known[i].trained) {
      global[i] = average[i];
      continue;
    }
    ServerStep step = step_on_copies(rule, i, global, kept);
    step.average = average[i].floats();
    rule.step(options, step);
  }
}

Weights weights_to_send(const ServerOptions& given, const Network& network, const Weights& global,
                        const NamedWeights& kept) {
  const ServerOptimizer& rule = server_optimizers().find(given.optimizer);
  if (!rule.look_ahead) return global;
  const ServerOptions options = settled(given, rule);
  Weights sent = global;
  NamedWeights state = kept;
  begin_state(rule, options, global, state);
  const std::vector<Parameter> known = parameters(network);
  for (size_t i = 0; i < sent.size(); ++i) {
    if (known[i].trained) rule.look_ahead(options, step_on_copies(rule, i, sent, state));
  }
  return sent;
}

void average_late_models(const ServerOptions& options, int64_t round, int64_t rounds,
                         Weights& global, NamedWeights& kept) {
  if (!averages_late(options, round)) return;
  Weights& mean = kept[kLateMean];
  const auto models = static_cast<float>(round - options.average_from + 1);
  if (models == 1) mean = global;
  for (size_t i = 0; i < global.size(); ++i) {
    mean[i] = mean[i].clone();
    const float* w = global[i].floats();
    float* m = mean[i].floats();
    for (int64_t j = 0; j < mean[i].count(); ++j) m[j] += (w[j] - m[j]) / models;
  }
  if (round == rounds) global = mean;
}

}  // namespace fedsmooth
