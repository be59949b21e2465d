// Sets the values of an experiment from TOML. Only the readers of this module include it, because
// toml++ takes longer to compile than they do.
#pragma once

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/config/fields.h"

namespace fedsmooth {

/// Returns every key that training reads, bound to its value in `experiment`, which must outlive
/// the list.
std::vector<Field> training_fields(Experiment& experiment);

/// Returns every key, those of training first, then those of certificates and logs. Each is bound
/// to its value in `experiment`, which must outlive the list.
std::vector<Field> experiment_fields(Experiment& experiment);

/// Parses TOML text. Throws an Error with `name` and the line if it is not TOML or has more than
/// 4,096 dots.
toml::table parse_toml(std::string_view text, const std::string& name);

/// Returns `base` with all keys of the table applied. Throws an Error with `name` and the line if
/// a key is unknown or its value is refused.
Experiment experiment_from_toml(const toml::table& table, const std::string& name,
                                Experiment base = {});

/// Sets one key. Throws an Error that names the key; the caller adds file and line.
void set_from_toml(Experiment& experiment, const std::string& key, const toml::node& node);

}  // namespace fedsmooth
