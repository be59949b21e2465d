// Server rules: a rule decides which weights clients start from, moves the global weights w by
// Delta = average - w, and keeps named state from round to round. Each is a row of a table; see
// Reddi et al. 2021 for the family.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/base/registry.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

struct ServerOptions {
  std::string optimizer = "average";  // a name of server_optimizers()
  double learning_rate = 0.0;         // eta; 0 ("auto"): the rule's own, if it has one
  double momentum = 0.9;              // for `momentum` and `acg`
  // For `adam`, `yogi` and `adagrad`.
  std::optional<double> beta1;  // nothing ("auto"): 0.9, and 0 for adagrad
  double beta2 = 0.99;
  double tau = 1e-3;
  /// FedCluster (Chen et al. 2020): the seed splits the clients into this many fixed clusters, and
  /// a round draws a part of its cohort from each in turn, with a server step after each.
  int64_t clusters = 1;
  /// The run ends with the mean of the global models after this round and all later ones, running
  /// statistics included. Rounds are counted from 1; 0: with the last model.
  int64_t average_from = 0;
};

/// One tensor of trained weights in a server's step.
struct ServerStep {
  int64_t count = 0;
  const float* average = nullptr;  // the cohort's average; null in look_ahead()
  float* w = nullptr;              // the global weights, which the step moves
  std::vector<float*> state;       // of this tensor, in the order of ServerOptimizer::state
};

struct ServerOptimizer {
  /// One number that a rule keeps for each weight, and its value before the first round.
  struct State {
    std::string name;
    std::function<double(const ServerOptions&)> first;
  };

  std::string name;
  /// Used where the options have no learning rate; nothing: the options must have one.
  std::optional<double> learning_rate;
  std::vector<State> state;
  /// Moves w and the state. The options have a learning rate by now.
  std::function<void(const ServerOptions&, const ServerStep&)> step;
  /// Moves w to the weights that clients start from, without changing the state. Empty: they start
  /// from w.
  std::function<void(const ServerOptions&, const ServerStep&)> look_ahead = {};
};

/// Returns the table of all rules. A program may add its own before it trains.
Registry<ServerOptimizer>& server_optimizers();

/// Throws an Error for options that no rule can follow.
void check_server_options(const ServerOptions& options);

/// The state of a rule by name, each in the order and shapes of parameters().
using NamedWeights = std::map<std::string, Weights>;

/// Returns the names of the state after `round` rounds.
std::vector<std::string> names_kept(const ServerOptions& options, int64_t round);

/// Gives `kept` the first values of what the rule keeps, where they are missing.
void begin_server(const ServerOptions& options, const Weights& global, NamedWeights& kept);

/// Returns the weights that a round's clients start from. Reads `kept` as server_step() left it.
Weights weights_to_send(const ServerOptions& options, const Network& network, const Weights& global,
                        const NamedWeights& kept);

/// Moves `global` by the rule that the options name. Running statistics become the average under
/// every rule, because a rule could make a variance negative. `kept` is empty before the first
/// round. Arrays are replaced, not written to, so a checkpoint that shares them stays as it was.
void server_step(const ServerOptions& options, const Network& network, const Weights& average,
                 Weights& global, NamedWeights& kept);

/// Adds the global weights after round `round` to the mean of late models (average_from), which
/// `kept` holds. After the last of `rounds` rounds the mean becomes the global weights.
void average_late_models(const ServerOptions& options, int64_t round, int64_t rounds,
                         Weights& global, NamedWeights& kept);

}  // namespace fedsmooth
