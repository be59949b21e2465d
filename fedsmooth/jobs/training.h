// Training into run folders: what `train` and `sweep` do.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/records/rounds.h"

namespace fedsmooth::jobs {

/// A round as it is handed out to nodes.
struct AskedRound {
  int64_t t = 0;                 // from 0
  int64_t total = 0;             // images of all clients
  std::vector<int64_t> clients;  // rising
  std::vector<double> shares;    // of each in the average
  Model model;                   // to start from
};

/// Who runs a run's clients, if not this process; see federation.h.
struct Federation {
  /// What the nodes' answers to each round add up to: RoundSum::total(). Nothing: the round is
  /// given up, so that the weights stay and the next round follows. There is one round for each
  /// group.
  std::function<std::vector<std::vector<long long>>(const std::vector<AskedRound>&)> ask;
  std::string device, arithmetic;  // of the nodes
  /// How many images of its own each client has, a node each; 0 of a number that no node has.
  /// Empty: nodes have the experiment's data.
  std::vector<int64_t> images;
};

struct TrainingPlace {
  std::filesystem::path experiment;  // the file
  std::filesystem::path folder;      // of the run
};

/// `named` is an experiment file; or a run folder, or the experiment.toml in one, which mean that
/// run. An empty `folder` becomes that run's, or runs/NAME for NAME.toml.
TrainingPlace find_training(const std::filesystem::path& named,
                            const std::filesystem::path& folder);

struct TrainArguments {
  const Experiment& experiment;
  std::filesystem::path folder;
  bool resume = false;  // from the folder's checkpoint on
  /// Called after every round, by one thread at a time. What it throws ends the run. May be empty.
  std::function<void(const RoundRow&)> on_round = {};
  const Federation* federation = nullptr;
};

struct TrainedRun {
  bool is_new = true;  // false: it was done already
  int64_t rounds = 0;
  double loss = 0;  // of the last round
  std::string model_sha256;
};

/// Trains until the folder has its DONE file; a run of several groups, until all of theirs do.
/// Throws Interrupted once it is asked to stop, with the state saved. A seed that was drawn is that
/// of the folder, if it has been begun.
TrainedRun train(const TrainArguments& run, const Context& context);

/// Whether two experiments can be trained side by side: they have the mode, data, network and local
/// step in common. Their numbers (sigma, epsilon, learning rate, seed, rounds) may differ. Runs of
/// several groups go side by side with none.
bool go_side_by_side(const Experiment& a, const Experiment& b);

/// Trains the first run and, side by side with it, as many of the others as the machine takes at
/// once: on a GPU all, on the CPU as many centralized ones as threads. Each folder gets what
/// train() gives it.
/// With several ranks, the others take part by take_training().
/// Returns what each of the runs that were trained threw, Interrupted included; null: it is done.
std::vector<std::exception_ptr> train_runs(const std::vector<TrainArguments>& runs,
                                           const Context& context);

/// Trains all of the runs side by side, or none: throws what one of them throws that cannot be
/// trained. Otherwise as train_runs().
std::vector<std::exception_ptr> train_together(const std::vector<TrainArguments>& runs,
                                               const Context& context);

/// Another rank's part in the training that rank 0 announced.
void take_training(const nlohmann::json& job, const Context& context);

}  // namespace fedsmooth::jobs
