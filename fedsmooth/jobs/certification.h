// CERTIFY on the test set, into a table: what `certify` and `sweep` do.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

/// Part `number` of `count`.
struct Shard {
  int64_t number = 1, count = 1;
};

/// Reads I/K; nothing if it is not that.
std::optional<Shard> parse_shard(const std::string& text);

struct CertifyArguments {
  std::string path;   // run folder or model
  std::string out;    // empty: beside the model
  std::string shard;  // I/K, or empty
  bool resume = false;
};

/// Writes the table and returns where it is. Throws Interrupted when told to stop; what is done
/// stays. With several ranks, the others take part by take_certification().
std::filesystem::path certify(const CertifyArguments& arguments, const Overrides& overrides,
                              const Context& context);

/// Another rank's part in the certification that rank 0 announced.
void take_certification(const nlohmann::json& job, const Context& context);

/// Whether a run's table holds every certificate that its experiment asks for.
bool is_certified(const std::filesystem::path& run, const Experiment& experiment);

}  // namespace fedsmooth::jobs
