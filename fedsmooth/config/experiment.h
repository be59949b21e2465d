// One experiment: the option structs of the modules, read from and written to TOML. A section is a
// struct, and its keys are the struct's fields.
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
  std::optional<uint64_t> seed;  // none ("auto"): derived from run, model and data
  const NoiseLaw* noise = &kFloatNoise;
  int64_t every = 20;  // certify every Nth test image
  int64_t limit = 0;   // maximum number of images; 0: all
};

struct LogOptions {
  bool tensorboard = false;  // event files in the run folder
};

struct Experiment {
  uint64_t seed = 0;
  bool seed_is_random = false;  // `seed` was drawn when the key was read (seed = "random")
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

/// Returns the sigma that certificates use: certify.sigma, or smoothing.sigma if that is 0.
double certified_sigma(const Experiment& experiment);
/// Returns certify.seed, or the experiment's seed if certify.seed is "auto". Attacks use this seed.
/// For "auto", certificates use derive_seed() of records/certificate_identity.h instead; tables of
/// earlier versions used this seed.
uint64_t certified_seed(const Experiment& experiment);

/// Throws an Error for an experiment that could be trained but never certified.
void check_certification(const Experiment& experiment);

/// Reads TOML text; keys that are left out keep their values in `base`. Throws an Error with `name`
/// and the line for an unknown key, a wrong type or a value out of range, and for a [sweep].
Experiment parse_experiment(std::string_view text, const std::string& name, Experiment base = {});
/// Reads a TOML file by parse_experiment().
Experiment read_experiment(const std::filesystem::path& path);

/// Returns every value as TOML that reads back to the same experiment.
std::string format_experiment(const Experiment& experiment);
/// Formats an experiment as TOML, with a comment that states the default wherever a value differs
/// from it.
std::string format_with_defaults(const Experiment& experiment);

/// Formats the keys that training reads, as TOML. Experiments with the same text train the same
/// model.
std::string format_training(const Experiment& experiment);
/// Returns the first key in which two experiments differ, with both values; empty if there is none.
/// Only keys that training reads are compared.
std::string training_difference(const Experiment& there, const Experiment& here);

/// Sets `key` (section.key) to `value`, as given on the command line. Throws an Error that begins
/// with --key if the key is unknown or the value is refused.
void set_key(Experiment& experiment, const std::string& key, const std::string& value);

/// Pairs of section.key and value, in the order given: a later one wins.
using Overrides = std::vector<std::pair<std::string, std::string>>;
/// Applies each pair by set_key().
void apply_overrides(Experiment& experiment, const Overrides& overrides);

/// Returns the value of one key as TOML. A Bug if there is no such key.
std::string show_key(const Experiment& experiment, const std::string& key);

/// Returns all keys, in the order of the file.
std::vector<std::string> experiment_keys();
/// Returns the keys whose value is the path of a file or folder that a job opens. An experiment
/// that came from another machine must not choose them.
std::vector<std::string> keys_of_files();

/// Returns the first key whose last part is `word`, such as train.rounds for rounds; empty if there
/// is none.
std::string key_ending_in(const std::string& word);

}  // namespace fedsmooth
