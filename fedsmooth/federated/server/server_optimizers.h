// What the server does with a round's average: a rule decides which weights clients start from,
// moves the global weights w by way of Delta = average - w, and keeps named state from round to
// round. One row of a table each; see Reddi et al. 2021 for the family.
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
  double momentum = 0.9;              // of `momentum` and `acg`
  // Of `adam`, `yogi` and `adagrad`.
  std::optional<double> beta1;  // none ("auto"): 0.9, and 0 for adagrad
  double beta2 = 0.99;
  double tau = 1e-3;
  /// FedCluster (Chen et al. 2020): the clients are split into so many fixed clusters by the seed,
  /// and a round takes its cohort from one after another, with a server's step for each.
  int64_t clusters = 1;
  /// The run ends with the mean of the global models after this round and all later ones, running
  /// statistics included. Rounds are counted from 1; 0: with the last model.
  int64_t average_from = 0;
};

/// One tensor of trained weights in a server's step.
struct ServerStep {
  int64_t count = 0;
  const float* average = nullptr;  // null before a round
  float* w = nullptr;              // as before the round; the step moves them
  std::vector<float*> state;       // of this tensor, in the order of ServerOptimizer::state
};

struct ServerOptimizer {
  /// What a rule keeps of each weight, and the value that it has before the first round.
  struct State {
    std::string name;
    std::function<double(const ServerOptions&)> first;
  };

  std::string name;
  /// Where the options have none; none: it must be given.
  std::optional<double> learning_rate;
  std::vector<State> state;
  /// The options have a learning rate.
  std::function<void(const ServerOptions&, const ServerStep&)> step;
  /// Moves w to the weights that clients start from, and leaves the state as it is. Empty: they
  /// start from w.
  std::function<void(const ServerOptions&, const ServerStep&)> look_ahead = {};
};

/// All rules. A program may add its own before it trains.
Registry<ServerOptimizer>& server_optimizers();

/// Refuses what cannot be followed.
void check_server_options(const ServerOptions& options);

/// What a rule keeps, by name, in the order and shapes of parameters().
using NamedWeights = std::map<std::string, Weights>;

/// Returns the names of what is kept after `round` rounds.
std::vector<std::string> names_kept(const ServerOptions& options, int64_t round);

/// Gives `kept` the first values of what the rule keeps, where they are missing.
void begin_server(const ServerOptions& options, const Weights& global, NamedWeights& kept);

/// Returns the weights that a round's clients start from. Reads `kept` as server_step() left it.
Weights weights_to_send(const ServerOptions& options, const Network& network, const Weights& global,
                        const NamedWeights& kept);

/// Moves `global` by the rule that the options name. Running statistics become the average whatever
/// the rule: carried on, a variance would become negative. `kept` is empty before the first round.
/// Arrays are replaced, never written to: what was handed out as a checkpoint stays as it was.
void server_step(const ServerOptions& options, const Network& network, const Weights& average,
                 Weights& global, NamedWeights& kept);

/// Takes the global weights after round `round` into the mean that average_from asks for, which
/// `kept` holds. After the last of `rounds` rounds the mean becomes the global weights.
void average_late_models(const ServerOptions& options, int64_t round, int64_t rounds,
                         Weights& global, NamedWeights& kept);

}  // namespace fedsmooth
