// The run folder: what a training leaves, and what it needs to resume after a kill.
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

/// Makes the folder and writes its experiment, or opens it again if `resume` is set. A folder that
/// has more than the beginning of a training is an Error otherwise; one whose training differs
/// always, with the first key that does. Keys that training does not read ([certify], [log]) take
/// the values of `experiment`.
Run start_run(const std::filesystem::path& folder, const Experiment& experiment, bool resume);

/// Gives an experiment whose seed was drawn the one that the folder's run drew, if there is one.
void keep_drawn_seed(Experiment& experiment, const std::filesystem::path& folder);

/// The run folder that `path` names: the folder itself, or the one whose experiment.toml it is,
/// once training has begun there. None if it names no run.
std::optional<std::filesystem::path> run_at(const std::filesystem::path& path);

/// Opens a folder for reading; an Error if there is no run or it is not done.
Run open_run(const std::filesystem::path& folder);

/// The folder of a group, from 1, in that of a run of several groups.
std::filesystem::path group_folder(const std::filesystem::path& run, int64_t number);
/// Whether there is a run of several groups here, be it unfinished.
bool is_run_of_groups(const std::filesystem::path& folder);

/// SHA-256 of the model that was trained in this folder, or digest_groups() of its groups' models;
/// none if it does not say.
std::optional<std::string> trained_sha256(const std::filesystem::path& folder);

/// SHA-256 of clients.tsv and of rounds.tsv, as far as they are there, by key in provenance.json. A
/// federation of nodes with images of their own has no clients.tsv.
std::map<std::string, std::string> digest_history(const std::filesystem::path& folder);
/// The seed that training drew, when it was done, for the certificates of several groups. Throws an
/// Error if there is none.
uint64_t drawn_certificate_seed(const std::filesystem::path& folder);

/// Throws an Error if clients.tsv or rounds.tsv is not the one that training left in this folder.
/// Runs of version 0.2 do not say, and are not compared.
void check_history(const std::filesystem::path& folder);

/// Gives the folder what training gave another one, with the same seed, data, network and training
/// options.
void copy_training(const std::filesystem::path& from, const Run& to);

/// What a run's bits depend on besides its experiment: what computes it, which data. By name.
using Provenance = std::map<std::string, std::string>;

/// Returns the metadata of a file that training keeps in its run folder: `origin` and what training
/// reads of the experiment.
Provenance bind_to_training(Provenance origin, const Experiment& experiment);
/// Returns the origin in such metadata. Throws an Error that names the first key that differs if
/// the file is of another experiment. Files of version 0.2 state no experiment and are not
/// compared.
Provenance check_is_of_training(Provenance metadata, const Experiment& here,
                                const std::string& name);

bool has_checkpoint(const Run& run);
void write_checkpoint(const Run& run, const Network& network, const ServerState& state,
                      const Provenance& origin);
/// A checkpoint of another origin or of another experiment is an Error: the run would be neither
/// one's. So is one with more or less than what the experiment's server keeps.
ServerState read_checkpoint(const Run& run, const Network& network, const Provenance& origin);

}  // namespace fedsmooth
