// CERTIFY on the test set, into a table of certificates. The commands `certify` and `sweep` call
// this.
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

/// Part `number`, from 1, of `count` parts of the images.
struct Shard {
  int64_t number = 1, count = 1;
};

/// Reads I/K with 1 <= I <= K; none if the text is anything else.
std::optional<Shard> parse_shard(const std::string& text);

struct CertifyArguments {
  std::string path;   // run folder or model
  std::string out;    // empty: beside the model
  std::string shard;  // I/K, or empty
  bool resume = false;
  std::vector<std::string> with;  // further models, as one classifier with `path`; require `out`
  AgainstOptions against;  // only checked, before the first vote; certify_against() applies them
};

/// Certifies the images and returns the path of the table. Throws Interrupted when stopped; the
/// rows that are done stay. With several ranks rank 0 calls this, and the others
/// work_on_certification().
std::filesystem::path certify(const CertifyArguments& arguments, const Overrides& overrides,
                              const Context& context);

/// A classifier that the caller made, such as a function of another language.
struct ClassifierInHand {
  std::shared_ptr<Sampler> sampler;
  std::string name;    // for messages and the table's JSON
  std::string sha256;  // of its file; empty: there is no file, and the fingerprint is used instead
};

/// Images that the caller picked from a data set.
struct ImagesInHand {
  Dataset images;
  std::vector<int64_t> indices;  // of each image in its data set, ascending
  std::string name;              // of the data set
  std::string sha256;            // of the whole data set; empty: of these images
};

/// Certifies each of these images into `table`, with the checks, rows and identity of certify().
/// `options` must have sigma and seed; `every` and `limit` are only recorded. Uses this process
/// alone. Throws Interrupted when stopped; the rows that are done stay.
void certify_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                     const CertificationOptions& options, const std::filesystem::path& table,
                     bool resume, const Context& context);

/// Does the part of a rank other than 0 in the certification `job` that rank 0 announced.
void work_on_certification(const nlohmann::json& job, const Context& context);

class TestSets;  // see certification/certification_job.h

/// Returns whether a run's table has every certificate that its experiment asks for, for the model
/// and the data as they are now.
bool is_certified(const std::filesystem::path& run, TestSets& test_sets, const Context& context);

}  // namespace fedsmooth::jobs
