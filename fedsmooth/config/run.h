// The run folder: what a training leaves, and what it needs to go on after a kill.
//
//   experiment.toml  clients.tsv  rounds.tsv  checkpoint/state.safetensors  model.safetensors
//   provenance.json  DONE
#pragma once

#include <filesystem>
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
/// exists is an Error otherwise; one of another experiment always, with the first line that
/// differs.
Run start_run(const std::filesystem::path& folder, const Experiment& experiment, bool resume);

/// Opens a folder for reading; an Error if there is no run or it is not done.
Run open_run(const std::filesystem::path& folder);

/// Gives the folder what training gave another one, with the same seed, data, network and training
/// options.
void copy_training(const std::filesystem::path& from, const Run& to);

/// `device` says what computed it, as different devices round differently.
void write_checkpoint(const Run& run, const Network& network, const ServerState& state,
                      const std::string& device);
/// Nothing if there is none yet. One that another device made is an Error: the run would be neither
/// one's.
std::optional<ServerState> read_checkpoint(const Run& run, const Network& network,
                                           const std::string& device);

}  // namespace fedsmooth
