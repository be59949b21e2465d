// CERTIFY on the test set, into a table: what `certify` and `sweep` do.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/against.h"
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
  std::vector<std::string> with;  // models that are one classifier with it; then `out` is required
  AgainstOptions against;  // checked before the first vote; see certify_against() for what follows
};

/// Writes the table and returns where it is. Throws Interrupted when told to stop; what is done
/// stays. With several ranks, the others take part by take_certification().
std::filesystem::path certify(const CertifyArguments& arguments, const Overrides& overrides,
                              const Context& context);

/// A classifier that the caller made, such as a function of another language.
struct ClassifierInHand {
  std::shared_ptr<Sampler> sampler;
  std::string name;    // for messages and the table's JSON
  std::string sha256;  // of its file; empty: there is none, and its fingerprint stands for it
};

/// Images that the caller picked from a data set.
struct ImagesInHand {
  Dataset images;
  std::vector<int64_t> indices;  // of each in its data set, rising
  std::string name;              // of the data set
  std::string sha256;            // of all of it; empty: that of these images
};

/// CERTIFY for each of these images, into `table`, with the checks, rows and identity of certify().
/// `options` has sigma and seed; `every` and `limit` are only recorded. On this process alone.
void certify_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                     const CertificationOptions& options, const std::filesystem::path& table,
                     bool resume, const Context& context);

/// Another rank's part in the certification that rank 0 announced.
void take_certification(const nlohmann::json& job, const Context& context);

class TestSets;  // see certification_plan.h

/// Whether a run's table holds every certificate that its experiment asks for, of its model on its
/// data as they are now.
bool is_certified(const std::filesystem::path& run, TestSets& test_sets, const Context& context);

}  // namespace fedsmooth::jobs
