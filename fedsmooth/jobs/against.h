// Cost-sensitive certificates from stored votes, without the model: `--against`, `--superclasses`
// and `--top`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/report/against.h"

namespace fedsmooth::jobs {

struct AgainstOptions {
  /// Names or numbers of classes, or names of superclasses; one item may list several by commas.
  std::vector<std::string> against;
  /// A TOML file, see config/superclasses.h. Without `against`: g is to stay in the superclass of
  /// the selected class, and every class must be in one.
  std::string superclasses;
  int64_t top = 0;  // the selected class is to stay among g's `top` likeliest

  bool asked() const { return !against.empty() || !superclasses.empty() || top != 0; }
};

/// Returns the classes to avoid that the options name. There are as many classes as names, or
/// `classes` if no names are given. Throws an Error for unknown names, and for options that do not
/// go together.
Avoidance find_avoidance(const AgainstOptions& options, const std::vector<std::string>& class_names,
                         int64_t classes);

/// What is certified, in words: "g is none of bird, cat".
std::string describe(const Avoidance& avoidance, const std::vector<std::string>& class_names);

struct AgainstArguments {
  std::string table;  // or its run folder
  AgainstOptions options;
  double alpha = 0;  // 0: the table's own
  std::string out;   // table to write, beside its JSON; empty: none
};

/// Throws before it writes anything if rows cannot be held against classes, see radii_against().
AgainstResult certify_against(const AgainstArguments& arguments);
/// The same for a run in memory.
AgainstResult certify_against(const RunRecord& run, const AgainstOptions& options,
                              double alpha = 0);

}  // namespace fedsmooth::jobs
