// New radii from stored counts, without the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace fedsmooth::jobs {

struct RecertifyArguments {
  std::string table;   // or its run folder
  std::string out;     // empty: beside the table
  std::string radius;  // one-sided or multiclass; empty: the table's own
  double alpha = 0.0;
  std::optional<int64_t> malicious;  // of several groups; none: the table's own
};

/// The value of --malicious. Throws an Error unless it is a whole number from 0 on.
int64_t parse_malicious(const std::string& text);

/// Writes a table with the same counts at another alpha, and returns where it is. Rows of given
/// radii keep them: each needs its evidence at that alpha. To hold, alpha must have been chosen
/// without regard to these votes. Of several groups with a fixed number of votes, all numbers of
/// malicious clients up to `malicious` are claimed at once, each at alpha / (malicious + 1).
std::filesystem::path recertify(const RecertifyArguments& arguments);

}  // namespace fedsmooth::jobs
