// How an experiment gets its values from TOML: for the readers of this module only, as toml++ costs
// more to compile than they do.
#pragma once

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/config/fields.h"

namespace fedsmooth {

/// Every key that training reads, bound to its value in `experiment`, which must outlive the list.
std::vector<Field> training_fields(Experiment& experiment);

/// Every key: those of training, then those of certificates and logs.
std::vector<Field> experiment_fields(Experiment& experiment);

/// An Error says `name` and the line.
toml::table parse_toml(std::string_view text, const std::string& name);

/// All keys of a table over those of `base`.
Experiment experiment_from_toml(const toml::table& table, const std::string& name,
                                Experiment base = {});

/// One key. An Error names the key; the caller adds where.
void set_from_toml(Experiment& experiment, const std::string& key, const toml::node& node);

}  // namespace fedsmooth
