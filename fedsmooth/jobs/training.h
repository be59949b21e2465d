// Training into run folders. The commands `train` and `sweep` call this.
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
  std::vector<int64_t> clients;  // ascending
  std::vector<double> shares;    // each client's weight in the average
  Model model;                   // from which the clients start
};

/// The nodes that run the clients in place of this process; see federation.h.
struct Federation {
  /// Asks nodes to run these rounds (one for each group, or a single one) and returns the sum of
  /// their answers to each, RoundSum::total(). An empty sum gives its round up: the weights stay,
  /// and the next round follows.
  std::function<std::vector<std::vector<long long>>(const std::vector<AskedRound>&)> ask;
  std::string device, arithmetic;  // of the nodes
  /// The number of images of each client, if each client is a node with images of its own; 0 for a
  /// client number that no node has. Empty: nodes have the experiment's data.
  std::vector<int64_t> images;
};

struct TrainingPlace {
  std::filesystem::path experiment;  // experiment file
  std::filesystem::path folder;      // run folder
};

/// Returns the experiment file that a user names by `path`: that of a run folder, or `path` itself.
/// Throws an Error if `path` is a folder without a run.
std::filesystem::path experiment_file(const std::filesystem::path& path);

/// Returns the experiment file and the run folder of a training. `named` is an experiment file, a
/// run folder or the experiment.toml of one. If `folder` is empty it becomes the named run's
/// folder, or runs/NAME for NAME.toml. Throws an Error for a folder that is no run.
TrainingPlace find_training(const std::filesystem::path& named,
                            const std::filesystem::path& folder);

/// The experiment and the federation must outlive it.
struct TrainArguments {
  const Experiment& experiment;
  std::filesystem::path folder;
  bool resume = false;  // continue from the folder's checkpoint
  /// Called after every round, by one thread at a time. An exception that it throws ends the run.
  /// May be empty.
  std::function<void(const RoundRow&)> on_round = {};
  const Federation* federation = nullptr;  // null: this process or its ranks run the clients
};

struct TrainedRun {
  bool is_new = true;  // false: it was done before the call
  int64_t rounds = 0;
  double loss = 0;  // of the last round
  std::string model_sha256;
};

/// Trains until the folder, and for several groups each group's folder, has its DONE file. A drawn
/// seed is replaced by the seed of a run that was begun in the folder. Throws Interrupted when
/// stopped, with the state saved, and an Error for a run that is refused. With several ranks rank 0
/// calls this, and the others work_on_training().
TrainedRun train(const TrainArguments& run, const Context& context);

/// Returns whether two experiments can be trained side by side: they must have the same mode, data,
/// network and operations of a local step. Their numbers (sigma, epsilon, learning rate, seed,
/// rounds) may differ. Runs of several groups cannot.
bool go_side_by_side(const Experiment& a, const Experiment& b);

/// Trains the first of `runs`, and as many of the following side by side with it as fill the
/// machine: all on a GPU; on the CPU one federated run, or one centralized run per thread and rank.
/// go_side_by_side() must hold for every two runs. Each folder gets the files that train() writes.
/// Returns, for each run that was trained, the exception that it threw, Interrupted included; null:
/// it is done. With several ranks rank 0 calls this, and the others work_on_training().
std::vector<std::exception_ptr> train_runs(const std::vector<TrainArguments>& runs,
                                           const Context& context);

/// Trains all of `runs` side by side, or none: throws, before any is opened, if one is refused.
/// Returns the exception of each run, Interrupted included; null: it is done. If a folder cannot be
/// opened, no run is trained, and only the runs that could not be opened have an exception. With
/// several ranks rank 0 calls this, and the others work_on_training().
std::vector<std::exception_ptr> train_together(const std::vector<TrainArguments>& runs,
                                               const Context& context);

/// Does the part of a rank other than 0 in the training `job` that rank 0 announced.
void work_on_training(const nlohmann::json& job, const Context& context);

}  // namespace fedsmooth::jobs
