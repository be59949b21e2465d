// CERTIFY on the test set, into a table: what `certify` and `sweep` do.
#pragma once

#include <filesystem>
#include <string>

#include "cli/options.h"

namespace fedsmooth::cli {

struct CertifyArguments {
  std::string path;   // run folder or model
  std::string out;    // empty: beside the model
  std::string shard;  // I/K, or empty
  bool resume = false;
};

/// Writes the table and returns where it is. Throws Interrupted when told to stop; what is done
/// stays.
std::filesystem::path certify_images(const CertifyArguments& arguments, const Overrides& overrides,
                                     const Common& common);

/// Whether a run's table holds every certificate that its experiment asks for.
bool is_certified(const std::filesystem::path& run, const Experiment& experiment);

}  // namespace fedsmooth::cli
