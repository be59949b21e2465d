#include "fedsmooth/records/certificate_identity.h"

#include <algorithm>
#include <functional>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

// Calls visit(key, member) for every field. Identity may be const.
template <typename Identity, typename Visit>
void visit_subject(Identity& i, const Visit& visit) {
  visit("model_sha256", i.model_sha256);
  visit("members", i.members);
  visit("groups", i.groups);
  visit("data", i.data);
  visit("data_sha256", i.data_sha256);
  visit("held_out", i.held_out);
  visit("sigma", i.sigma);
  visit("seed", i.seed);
  visit("every", i.every);
  visit("limit", i.limit);
  visit("images", i.images);
  visit("fingerprint", i.fingerprint);
  visit("base", i.base);
}

template <typename Identity, typename Visit>
void visit_all(Identity& i, const Visit& visit) {
  visit_subject(i, visit);
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

// One reader per type of field.
struct Reader {
  const json& object;
  const std::string& name;

  void operator()(const char* key, std::optional<std::string>& value) const {
    value = find_string(object, key, name);
  }
  void operator()(const char* key, std::optional<int64_t>& value) const {
    value = find_count(object, key, name);
  }
  void operator()(const char* key, std::optional<uint64_t>& value) const {
    value = find_seed(object, key, name);
  }
  void operator()(const char* key, std::optional<double>& value) const {
    value = find_number(object, key, name);
  }
  void operator()(const char* key, std::optional<bool>& value) const {
    value = find_flag(object, key, name);
  }
  void operator()(const char* key, std::optional<RadiusKind>& value) const {
    const std::optional<std::string> text = find_string(object, key, name);
    if (!text) return;
    value = *text == radius_name(RadiusKind::kMulticlass) ? RadiusKind::kMulticlass
                                                          : RadiusKind::kOneSided;
    if (*text != radius_name(*value)) {
      throw Error("{}: \"{}\" is {:?}, which is not one-sided or multiclass", name, key,
                  text->substr(0, 40));
    }
  }
  void operator()(const char* key, std::optional<std::vector<double>>& value) const {
    if (!object.contains(key)) return;
    const json& list = object[key];
    const auto is_number = [](const json& item) { return item.is_number(); };
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_number)) {
      throw Error("{}: \"{}\" is not a list of numbers", name, key);
    }
    value = list.get<std::vector<double>>();
  }
  void operator()(const char* key, std::optional<std::vector<std::string>>& value) const {
    if (!object.contains(key)) return;
    const json& list = object[key];
    const auto is_text = [](const json& item) { return item.is_string(); };
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_text)) {
      throw Error("{}: \"{}\" is not a list of strings", name, key);
    }
    value = list.get<std::vector<std::string>>();
  }
};

struct Writer {
  json& object;

  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) const {
    if (value) object[key] = *value;
  }
  void operator()(const char* key, const std::optional<uint64_t>& value) const {
    if (value) object[key] = seed_json(*value);
  }
  void operator()(const char* key, const std::optional<RadiusKind>& value) const {
    if (value) object[key] = radius_name(*value);
  }
};

void refuse_unknown_fields(const CertificateIdentity& identity, const json& object,
                           const std::string& name) {
  std::set<std::string> known;
  visit_all(identity, [&](const char* key, const auto&) { known.insert(key); });
  for (const auto& [key, value] : object.items()) {
    if (known.contains(key)) continue;
    throw Error(
        "{}: the identity has {:?}, which this version does not know; read it with the version "
        "that wrote it",
        name, key.substr(0, 40));
  }
}

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
  SubjectIdentity identity;
  visit_subject(identity, Reader{object, name});
  return identity;
}

json SubjectIdentity::to_json() const {
  json object = json::object();
  visit_subject(*this, Writer{object});
  return object;
}

CertificateIdentity CertificateIdentity::from_json(const json& object, const std::string& name) {
  CertificateIdentity identity;
  visit_all(identity, Reader{object, name});
  refuse_unknown_fields(identity, object, name);
  check_derived_fields(identity, name);
  return identity;
}

json CertificateIdentity::to_json() const {
  json object = json::object();
  visit_all(*this, Writer{object});
  return object;
}

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
