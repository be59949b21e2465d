// The run folder: the results of a training, and the state from which it resumes after a kill.
//
//   experiment.toml  clients.tsv  rounds.tsv  checkpoint/state.safetensors  model.safetensors
//   provenance.json  DONE
//
// A run of several groups has experiment.toml, provenance.json, DONE and a run folder per group,
// group-01, group-02, ...
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "fedsmooth/config/experiment.h"

namespace fedsmooth {

struct Run {
  std::filesystem::path folder;
  Experiment experiment;

  bool done() const { return std::filesystem::exists(folder / "DONE"); }
};

/// Starts a run: makes the folder and writes its experiment. Throws an Error if the folder is not
/// empty and is no run. If training has left results in it, throws an Error unless `resume` is set,
/// and in any case if its experiment differs in a key that training reads; the message names the
/// key. Other keys ([certify], [log]) get the values of `experiment`.
Run start_run(const std::filesystem::path& folder, const Experiment& experiment, bool resume);

/// If the experiment's seed was drawn, replaces it by the seed in the folder's experiment.toml, if
/// there is one.
void keep_drawn_seed(Experiment& experiment, const std::filesystem::path& folder);

/// Returns the run folder that `path` names: `path` itself if it is a folder with an
/// experiment.toml, or the folder of an experiment.toml beside which training has begun. None if
/// `path` names no run.
std::optional<std::filesystem::path> run_at(const std::filesystem::path& path);

/// Opens a run for reading. Throws an Error if the folder has no run or the run is not done.
Run open_run(const std::filesystem::path& folder);

/// Returns the folder of a group, numbered from 1, in the folder of a run of several groups.
std::filesystem::path group_folder(const std::filesystem::path& run, int64_t number);
/// Returns whether the folder has a run of several groups, finished or not.
bool is_run_of_groups(const std::filesystem::path& folder);

/// Returns model_sha256 of provenance.json: the SHA-256 of the model that was trained in this
/// folder, or digest_groups() of its groups' models. None if it is not stated.
std::optional<std::string> trained_sha256(const std::filesystem::path& folder);

/// Returns data_sha256 of provenance.json: the digest of the images that were trained on. None if
/// it is not stated.
std::optional<std::string> trained_data_sha256(const std::filesystem::path& folder);

/// Returns the SHA-256 of clients.tsv and of rounds.tsv, where they exist, by their keys in
/// provenance.json. A federation of nodes with images of their own has no clients.tsv.
std::map<std::string, std::string> digest_history(const std::filesystem::path& folder);

/// Returns the seed for the certificates of several groups, which was drawn when training ended.
/// Throws an Error if there is none.
uint64_t drawn_certificate_seed(const std::filesystem::path& folder);

/// Throws an Error if clients.tsv or rounds.tsv differs from the one that training left in this
/// folder. Runs of version 0.2 recorded no digests and are not compared.
void check_history(const std::filesystem::path& folder);

/// Copies the results of a training to the run `to`, which must have the same seed, data, network
/// and training options, and marks it as done.
void copy_training(const std::filesystem::path& from, const Run& to);

/// Named values on which a run's bits depend besides its experiment, such as the engine and the
/// data.
using Provenance = std::map<std::string, std::string>;

/// Returns the metadata of a file that training keeps in its run folder: `origin`, and the part of
/// the experiment that training reads.
Provenance bind_to_training(Provenance origin, const Experiment& experiment);
/// Returns the origin in metadata that bind_to_training() made. Throws an Error that names the
/// first key that differs if the file is of another experiment; `name` is the file's. Files of
/// version 0.2 state no experiment and are not compared.
Provenance check_is_of_training(Provenance metadata, const Experiment& here,
                                const std::string& name);

bool has_checkpoint(const Run& run);
void write_checkpoint(const Run& run, const Network& network, const ServerState& state,
                      const Provenance& origin);
/// Reads the run's checkpoint. Throws an Error if it is damaged, of another origin or of another
/// experiment, or if its tensors are not those that the experiment's server keeps.
ServerState read_checkpoint(const Run& run, const Network& network, const Provenance& origin);

}  // namespace fedsmooth
