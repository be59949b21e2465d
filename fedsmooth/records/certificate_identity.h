// What a table is about: the "identity" in the JSON beside it. This is the only place that knows
// the keys. Rows are added to a table, and tables are joined, only if their identities are equal.
// Every field is optional, as tables of earlier versions leave some out; a field that this version
// does not know is refused, as nobody could compare it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// Which classifier and which images. Tables of attacks state this too.
struct SubjectIdentity {
  std::optional<std::string> model_sha256;  // of the file; of a function without one, fingerprint
  /// With several models as one classifier: the SHA-256 of each file in ascending order, and
  /// model_sha256 is digest_members() of them.
  std::optional<std::vector<std::string>> members;
  /// With the majority of several groups' networks as one classifier: how many there are. Then
  /// `members` lists them all, in ascending order, and model_sha256 is digest_groups().
  std::optional<int64_t> groups;
  std::optional<std::string> data, data_sha256;  // name of the data set, digest of its images
  std::optional<int64_t> held_out;               // training images in the place of test images
  std::optional<double> sigma;
  std::optional<uint64_t> seed;                  // of the votes' noise
  std::optional<int64_t> every, limit, images;   // which images are chosen, and how many these are
  std::optional<std::string> fingerprint, base;  // of f's logits; how they are computed

  /// Reads the fields above and ignores others. `name` is the file's, for messages.
  static SubjectIdentity from_json(const nlohmann::json& object, const std::string& name);
  nlohmann::json to_json() const;
};

struct CertificateIdentity : SubjectIdentity {
  /// With certify.seed = "auto": the run's seed, from which `seed` was derived by derive_seed().
  std::optional<uint64_t> run_seed;
  std::optional<int64_t> n0, n;
  std::optional<double> alpha;
  std::optional<RadiusKind> radius;
  std::optional<bool> only_correct;
  std::optional<bool> noise_bank;            // images shared their draws; tables of 0.2 and earlier
  std::optional<std::string> noise;          // name of a noise law
  std::optional<std::vector<double>> radii;  // given radii, with beta
  std::optional<double> beta, plan;
  std::optional<int64_t> classes;  // K, of the base classifier; not in earlier tables
  /// Of several groups: how many malicious clients radii are against. With a fixed number of votes
  /// all smaller numbers are claimed at once, each at the level `alpha`.
  std::optional<int64_t> malicious;
  std::optional<bool> seed_given;      // of several groups: not the one drawn when training ended
  std::optional<std::string> shard;    // I/K
  std::optional<std::string> subject;  // digest_subject(), which every row repeats; none: unbound

  static CertificateIdentity from_json(const nlohmann::json& object, const std::string& name);
  nlohmann::json to_json() const;

  /// The first field in which `there` differs, with both values; empty if there is none.
  std::string difference(const CertificateIdentity& there) const;
  /// As difference(), but fields that `there` leaves out are not compared.
  std::string stated_difference(const CertificateIdentity& there) const;

  VoteRule rule() const;
};

/// Whether two tables are about the same model, images and noise level, as far as they state them.
bool about_the_same(const SubjectIdentity& a, const SubjectIdentity& b);

/// 16 hexadecimal digits of SHA-256 over model_sha256, data_sha256 and fingerprint, which binds a
/// row to its table. None unless all three are stated.
std::optional<std::string> digest_subject(const SubjectIdentity& subject);

/// SHA-256 over the SHA-256s of an ensemble's members, whose order does not count. Throws an Error
/// if there are fewer than two or one is there twice.
std::string digest_members(std::vector<std::string> sha256s);

/// SHA-256 over the SHA-256s of the networks of several groups, whose order does not count. Two
/// groups may have the same network.
std::string digest_groups(std::vector<std::string> sha256s);

/// The seed of the noise of certificates of this model on these images: 63 bits of SHA-256 over the
/// run's seed and both digests. Certificates of two models, or on two sets of images, share no
/// draws.
uint64_t derive_seed(uint64_t run_seed, const std::string& model_sha256,
                     const std::string& data_sha256);

}  // namespace fedsmooth
