#include "fedsmooth/records/certificate_identity.h"

#include <algorithm>
#include <functional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/records/identity_fields.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

struct CertificateFields {
  template <typename Identity, typename Visit>
  void operator()(Identity& i, const Visit& visit) const {
    SubjectFields{}(i, visit);
    visit("run_seed", i.run_seed);
    visit("n0", i.n0);
    visit("n", i.n);
    visit("alpha", i.alpha);
    visit("radius", i.radius);
    visit("only_correct", i.only_correct);
    visit("noise_bank", i.noise_bank);
    visit("noise", i.noise);
    visit("radii", i.radii);
    visit("beta", i.beta);
    visit("plan", i.plan);
    visit("classes", i.classes);
    visit("malicious", i.malicious);
    visit("seed_given", i.seed_given);
    visit("shard", i.shard);
    visit("subject", i.subject);
  }
};

// Throws an Error unless `members` lists the network of each group and model_sha256 is their
// digest.
void check_groups(const CertificateIdentity& i, const std::string& name) {
  if (!i.groups) {
    if (i.malicious) throw Error("{}: \"malicious\" is there without \"groups\"", name);
    return;
  }
  if (!i.malicious || *i.groups < 2 || *i.groups > kMaxGroups || *i.malicious > *i.groups / 2) {
    throw Error("{}: \"groups\" must be from 2 to {}, and \"malicious\" at most half of it", name,
                kMaxGroups);
  }
  if (!i.members || std::ssize(*i.members) != *i.groups || !std::ranges::is_sorted(*i.members)) {
    throw Error("{}: \"members\" is not a list of {} SHA-256s in ascending order", name, *i.groups);
  }
  if (i.model_sha256 != digest_groups(*i.members)) {
    throw Error("{}: \"model_sha256\" is not that of its groups", name);
  }
}

// Throws an Error unless `members` is sorted and model_sha256 is their digest.
void check_members(const CertificateIdentity& i, const std::string& name) {
  check_groups(i, name);
  if (!i.members || i.groups) return;
  const std::vector<std::string>& members = *i.members;
  const auto unsorted = std::adjacent_find(members.begin(), members.end(), std::greater_equal<>());
  if (members.size() < 2 || unsorted != members.end()) {
    throw Error("{}: \"members\" is not a list of two or more SHA-256s in ascending order", name);
  }
  if (i.model_sha256 != digest_members(members)) {
    throw Error("{}: \"model_sha256\" is not that of its members", name);
  }
}

// Refuses fields that contradict the fields from which they are derived.
void check_derived_fields(const CertificateIdentity& i, const std::string& name) {
  check_members(i, name);
  if (i.noise && find_law(*i.noise) == nullptr) {
    throw Error("{}: \"noise\" is {:?}, which is no law of this version", name,
                i.noise->substr(0, 40));
  }
  if (i.subject && i.subject != digest_subject(i)) {
    throw Error("{}: \"subject\" is not that of its model_sha256, data_sha256 and fingerprint",
                name);
  }
  const bool derived = i.seed && i.model_sha256 && i.data_sha256 && i.run_seed &&
                       *i.seed == derive_seed(*i.run_seed, *i.model_sha256, *i.data_sha256);
  if (i.run_seed && !derived) {
    throw Error("{}: \"seed\" is not what run_seed, model_sha256 and data_sha256 give", name);
  }
}

}  // namespace

SubjectIdentity SubjectIdentity::from_json(const json& object, const std::string& name) {
  return read_fields<SubjectIdentity>(SubjectFields{}, object, name);
}

json SubjectIdentity::to_json() const { return write_fields(SubjectFields{}, *this); }

CertificateIdentity CertificateIdentity::from_json(const json& object, const std::string& name) {
  const auto identity = read_fields<CertificateIdentity>(CertificateFields{}, object, name);
  check_derived_fields(identity, name);
  return identity;
}

json CertificateIdentity::to_json() const { return write_fields(CertificateFields{}, *this); }

std::string CertificateIdentity::difference(const CertificateIdentity& there) const {
  return identity_difference(to_json(), there.to_json());
}

std::string CertificateIdentity::stated_difference(const CertificateIdentity& there) const {
  const json here = to_json(), stated = there.to_json();
  json compared = json::object();
  for (const auto& [key, value] : stated.items()) {
    if (here.contains(key)) compared[key] = here[key];
  }
  return identity_difference(compared, stated);
}

VoteRule CertificateIdentity::rule() const {
  if (radii) return VoteRule::kRadii;
  return plan ? VoteRule::kPlan : VoteRule::kFixed;
}

const NoiseLaw& CertificateIdentity::law() const {
  if (!noise) return kCutFloatNoise;
  const NoiseLaw* found = find_law(*noise);
  if (found == nullptr) throw Error("noise={:?}: is no law of this version", *noise);
  return *found;
}

bool about_the_same(const SubjectIdentity& a, const SubjectIdentity& b) {
  return a.model_sha256 == b.model_sha256 && a.data_sha256 == b.data_sha256 && a.sigma == b.sigma;
}

std::optional<std::string> digest_subject(const SubjectIdentity& s) {
  if (!s.model_sha256 || !s.data_sha256 || !s.fingerprint) return std::nullopt;
  return sha256(fmt::format("fedsmooth subject\n{}\n{}\n{}\n", *s.model_sha256, *s.data_sha256,
                            *s.fingerprint))
      .substr(0, 16);
}

std::string digest_members(std::vector<std::string> sha256s) {
  std::sort(sha256s.begin(), sha256s.end());
  if (sha256s.size() < 2) throw Error("members: an ensemble has two or more");
  const auto twice = std::adjacent_find(sha256s.begin(), sha256s.end());
  if (twice != sha256s.end()) throw Error("members: {} is there twice", *twice);
  return sha256(fmt::format("fedsmooth members\n{}\n", fmt::join(sha256s, "\n")));
}

std::string digest_groups(std::vector<std::string> sha256s) {
  std::sort(sha256s.begin(), sha256s.end());
  return sha256(fmt::format("fedsmooth groups\n{}\n", fmt::join(sha256s, "\n")));
}

uint64_t derive_seed(uint64_t run_seed, const std::string& model_sha256,
                     const std::string& data_sha256) {
  const std::string digest = sha256(
      fmt::format("fedsmooth certificate seed\n{}\n{}\n{}\n", run_seed, model_sha256, data_sha256));
  return std::stoull(digest.substr(0, 16), nullptr, 16) >> 1;  // TOML has integers of 63 bits
}

}  // namespace fedsmooth
