// New radii from stored counts, without the model.
#pragma once

#include <filesystem>
#include <string>

namespace fedsmooth::jobs {

struct RecertifyArguments {
  std::string table;   // or its run folder
  std::string out;     // empty: beside the table
  std::string radius;  // one-sided or multiclass; empty: the table's own
  double alpha = 0.0;
};

/// Writes a table with the same counts at another alpha, and returns where it is. Rows of given
/// radii keep them: each needs its evidence at that alpha. To hold, alpha must have been chosen
/// without regard to these votes.
std::filesystem::path recertify(const RecertifyArguments& arguments);

}  // namespace fedsmooth::jobs
