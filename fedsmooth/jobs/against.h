// Cost-sensitive certificates from stored votes, without the model: radii within which the smoothed
// classifier g avoids given classes (`--against`), stays in a superclass (`--superclasses`) or has
// the label among its likeliest classes (`--top`).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/report/against.h"

namespace fedsmooth::jobs {

struct AgainstOptions {
  /// Names or numbers of classes, or names of superclasses. An item may list several, separated by
  /// commas. An item that is both the name of a class and a number counts as the name.
  std::vector<std::string> against;
  /// A TOML file, see config/superclasses.h. Without `against`, radii are those within which g
  /// stays in the superclass of the selected class, and every class must be in a superclass.
  std::string superclasses;
  int64_t top = 0;  // the selected class stays among g's `top` likeliest; 0: not asked
  /// Numbers of further classes, whatever the classes are called.
  std::vector<int64_t> numbers = {};

  bool names_classes() const { return !against.empty() || !numbers.empty(); }
  bool asked() const { return names_classes() || !superclasses.empty() || top != 0; }
};

/// Returns what the options ask g to avoid. The number of classes is that of `class_names` or, if
/// there are none, `classes`. Throws an Error for unknown names and for options that exclude each
/// other.
Avoidance find_avoidance(const AgainstOptions& options, const std::vector<std::string>& class_names,
                         int64_t classes);

/// Returns what is certified, in words: "g is never bird, cat".
std::string describe(const Avoidance& avoidance, const std::vector<std::string>& class_names);

struct AgainstArguments {
  std::string table;  // table or run folder
  AgainstOptions options;
  double alpha = 0;  // 0: the table's own
  std::string out;   // table to write, with a JSON beside it; empty: none
};

/// Certifies the rows of a table against the options, and writes the result if `out` names a table.
/// Throws an Error, before it writes anything, if the rows do not allow such certificates, see
/// radii_against().
AgainstResult certify_against(const AgainstArguments& arguments);
/// Certifies the rows of a run in memory against the options. If `alpha` is 0, the rows' own is
/// used. Throws an Error if the rows do not allow such certificates, see radii_against().
AgainstResult certify_against(const RunRecord& run, const AgainstOptions& options,
                              double alpha = 0);

}  // namespace fedsmooth::jobs
