// The identity of a table: the "identity" in the JSON beside it, which says what the table is
// about. Rows are added to a table, and tables are joined, only if their identities are equal.
// Every field is optional, because tables of earlier versions leave some out. A field that this
// version does not know is refused, because it could not be compared. The keys stand in one list of
// fields, see identity_fields.h.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// Names a classifier and the images it is evaluated on. Tables of certificates, attacks and
/// conformal sets state it.
struct SubjectIdentity {
  /// SHA-256 of the model file; a classifier without a file has its fingerprint here.
  std::optional<std::string> model_sha256;
  /// Set if the classifier is an ensemble or a majority of groups: the SHA-256 of each model file,
  /// in ascending order. model_sha256 is digest_members() of them, or digest_groups().
  std::optional<std::vector<std::string>> members;
  /// Set if the classifier is the majority of several groups' networks: the number of groups.
  std::optional<int64_t> groups;
  std::optional<std::string> data, data_sha256;  // name of the data set, digest of its images
  std::optional<int64_t> held_out;  // number of training images that replace the test images
  std::optional<double> sigma;
  std::optional<uint64_t> seed;                  // of the votes' noise
  std::optional<int64_t> every, limit, images;   // which images are chosen, and their number
  std::optional<std::string> fingerprint, base;  // digest of f's logits; how f is computed

  /// Reads the fields above. `name` is the file's, for messages. Throws an Error if a field is
  /// unknown or has another type.
  static SubjectIdentity from_json(const nlohmann::json& object, const std::string& name);
  nlohmann::json to_json() const;
};

struct CertificateIdentity : SubjectIdentity {
  /// With certify.seed = "auto": the run's seed, from which `seed` was derived by derive_seed().
  std::optional<uint64_t> run_seed;
  std::optional<int64_t> n0, n;
  std::optional<double> alpha;  // failure probability of each claim
  std::optional<RadiusKind> radius;
  std::optional<bool> only_correct;
  std::optional<bool> noise_bank;            // images shared their draws; tables of 0.2 and earlier
  std::optional<std::string> noise;          // name of a noise law
  std::optional<std::vector<double>> radii;  // given radii, with beta
  std::optional<double> beta, plan;
  std::optional<int64_t> classes;  // K, of the base classifier; not in earlier tables
  /// For several groups: the number of malicious clients against which the radii hold. With a fixed
  /// number of votes all smaller numbers are claimed, too, each at the level `alpha`.
  std::optional<int64_t> malicious;
  /// For several groups: `seed` was given, not drawn when training ended.
  std::optional<bool> seed_given;
  std::optional<std::string> shard;    // I/K
  std::optional<std::string> subject;  // digest_subject(), which every row repeats; none: unbound

  /// Reads an identity; `name` is the file's, for messages. Throws an Error if a field is unknown
  /// or has another type, or if a derived field (model_sha256 of members or groups, subject, seed)
  /// does not follow from the others.
  static CertificateIdentity from_json(const nlohmann::json& object, const std::string& name);
  nlohmann::json to_json() const;

  /// Returns the first field in which `there` differs, with both values; empty if there is none.
  std::string difference(const CertificateIdentity& there) const;
  /// Returns the first field that `there` states and in which it differs, with both values; empty
  /// if there is none.
  std::string stated_difference(const CertificateIdentity& there) const;

  VoteRule rule() const;
  /// Returns the law that `noise` names; kCutFloatNoise, the only one of version 0.1, if it names
  /// none. Throws an Error if no known law has the name.
  const NoiseLaw& law() const;
};

/// Returns whether both state the same model_sha256, data_sha256 and sigma; a field that both leave
/// out counts as the same.
bool about_the_same(const SubjectIdentity& a, const SubjectIdentity& b);

/// Returns 16 hexadecimal digits of SHA-256 over model_sha256, data_sha256 and fingerprint, which
/// bind a row to its table; none unless all three are stated.
std::optional<std::string> digest_subject(const SubjectIdentity& subject);

/// Returns the SHA-256 over the SHA-256s of an ensemble's members, in whatever order. Throws an
/// Error if there are fewer than two members or one occurs twice.
std::string digest_members(std::vector<std::string> sha256s);

/// Returns the SHA-256 over the SHA-256s of the networks of several groups, in whatever order. Two
/// groups may have the same network.
std::string digest_groups(std::vector<std::string> sha256s);

/// Returns the seed of the noise for certificates of this model on these images: 63 bits of SHA-256
/// over the run's seed and both digests. So certificates of two models, or on two sets of images,
/// share no draws.
uint64_t derive_seed(uint64_t run_seed, const std::string& model_sha256,
                     const std::string& data_sha256);

}  // namespace fedsmooth
