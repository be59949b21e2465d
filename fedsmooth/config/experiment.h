// One experiment: the option structs of the modules, read from and written to TOML. Sections are
// structs, keys their fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fedsmooth/data/dataset.h"
#include "fedsmooth/federated/train.h"
#include "fedsmooth/model/architectures.h"
#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

struct CertificationOptions : CertifyOptions {
  double sigma = 0.0;            // 0 ("auto"): smoothing.sigma
  std::optional<uint64_t> seed;  // none ("auto"): see derive_seed()
  const NoiseLaw* noise = &kFloatNoise;
  int64_t every = 20;  // certify every Nth test image
  int64_t limit = 0;   // at most this many images; 0: all
};

struct LogOptions {
  bool tensorboard = false;  // event files in the run folder
};

struct Experiment {
  uint64_t seed = 0;
  bool seed_is_random = false;  // it was drawn: a run that is resumed has drawn another one
  DataOptions data;
  PartitionOptions partition;
  GroupOptions groups;
  ModelOptions model;
  SmoothingOptions smoothing;
  AttackOptions attack;
  TrainOptions train;
  ObjectiveOptions objective;
  CertificationOptions certify;
  LogOptions log;
};

/// What a model of this experiment is certified with: certify.sigma, or what it is trained with.
double certified_sigma(const Experiment& experiment);
/// certify.seed, or the experiment's: the seed of attacks, and of certificates by versions before
/// certify.seed = "auto" was derived from model and data (derive_seed() in records).
uint64_t certified_seed(const Experiment& experiment);

/// Refuses an experiment that could be trained but never certified.
void check_certification(const Experiment& experiment);

/// Reads TOML text; keys that are left out keep their values in `base`. An unknown key, a wrong
/// type and a value out of range are Errors with `name` and the line.
Experiment parse_experiment(std::string_view text, const std::string& name, Experiment base = {});
Experiment read_experiment(const std::filesystem::path& path);

/// Every value as TOML that reads back to the same experiment.
std::string format_experiment(const Experiment& experiment);
/// Formats an experiment as TOML, with a comment that states the default wherever a value differs
/// from it.
std::string format_with_defaults(const Experiment& experiment);

/// The part of it that training reads. Experiments with the same text train the same model.
std::string format_training(const Experiment& experiment);
/// The first key that training reads in which two experiments differ, with both values; empty if
/// there is none.
std::string training_difference(const Experiment& there, const Experiment& here);

/// Applies `section.key` = `value` as given on the command line.
void set_key(Experiment& experiment, const std::string& key, const std::string& value);

/// `section.key`, value pairs, in the order given: a later one wins.
using Overrides = std::vector<std::pair<std::string, std::string>>;
void apply_overrides(Experiment& experiment, const Overrides& overrides);

/// The value of one key, as TOML.
std::string show_key(const Experiment& experiment, const std::string& key);

/// All keys, in the order of the file.
std::vector<std::string> experiment_keys();

/// The first key whose last part is `word`: train.rounds for rounds. Empty if there is none.
std::string key_ending_in(const std::string& word);

}  // namespace fedsmooth
