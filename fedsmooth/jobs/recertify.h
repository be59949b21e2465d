// Computes new radii from the counts of a table, without the model: at another alpha, of another
// kind, or against another number of malicious clients.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace fedsmooth::jobs {

struct RecertifyArguments {
  std::string table;                 // table or run folder
  std::string out;                   // empty: beside the table
  std::string radius;                // one-sided or multiclass; empty: the table's own
  std::optional<double> alpha;       // of all claims about an image; none: the table's own
  std::optional<int64_t> malicious;  // for several groups only; none: the table's own
};

/// Parses the value of --malicious. Throws an Error unless it is a whole number >= 0.
int64_t parse_malicious(const std::string& text);

/// Writes a table with the same counts and new radii, and returns its path. If the table decided
/// given radii, a row keeps those that its stored counts support at the new alpha. For several
/// groups with a fixed number of votes, all numbers of malicious clients up to `malicious` are
/// claimed at once, each at alpha / (malicious + 1). The certificates hold only if alpha, radius
/// and `malicious` were chosen without looking at these votes. Throws an Error if none of the three
/// is given, or if the new table exists.
std::filesystem::path recertify(const RecertifyArguments& arguments);

}  // namespace fedsmooth::jobs
