// Identities as JSON. An identity is a struct of optional fields; its list of fields is a function
// object that calls visit(key, member) for each of them, and is the only place that knows its keys.
// Reading refuses a key that is not in the list, because its value could not be compared.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fedsmooth/records/certificate_identity.h"

namespace fedsmooth {

/// A number, or "auto", as in experiments.
struct AutomaticNumber {
  double value = 0.0;  // 0: "auto"
};

/// The fields of a SubjectIdentity. `identity` may be const.
struct SubjectFields {
  template <typename Identity, typename Visit>
  void operator()(Identity& identity, const Visit& visit) const {
    visit("model_sha256", identity.model_sha256);
    visit("members", identity.members);
    visit("groups", identity.groups);
    visit("data", identity.data);
    visit("data_sha256", identity.data_sha256);
    visit("held_out", identity.held_out);
    visit("sigma", identity.sigma);
    visit("seed", identity.seed);
    visit("every", identity.every);
    visit("limit", identity.limit);
    visit("images", identity.images);
    visit("fingerprint", identity.fingerprint);
    visit("base", identity.base);
  }
};

/// Reads one field from `object`, by its type. Throws an Error that begins with `name` if the
/// member has another type.
struct IdentityReader {
  const nlohmann::json& object;
  const std::string& name;

  void operator()(const char* key, std::optional<std::string>& value) const;
  void operator()(const char* key, std::optional<int64_t>& value) const;
  void operator()(const char* key, std::optional<uint64_t>& value) const;
  void operator()(const char* key, std::optional<double>& value) const;
  void operator()(const char* key, std::optional<bool>& value) const;
  void operator()(const char* key, std::optional<RadiusKind>& value) const;
  void operator()(const char* key, std::optional<AutomaticNumber>& value) const;
  void operator()(const char* key, std::optional<std::vector<double>>& value) const;
  void operator()(const char* key, std::optional<std::vector<std::string>>& value) const;
};

/// Writes one field into `object`; a field without a value is left out.
struct IdentityWriter {
  nlohmann::json& object;

  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) const {
    if (value) object[key] = *value;
  }
  void operator()(const char* key, const std::optional<uint64_t>& value) const;
  void operator()(const char* key, const std::optional<RadiusKind>& value) const;
  void operator()(const char* key, const std::optional<AutomaticNumber>& value) const;
};

/// Throws an Error that begins with `name` if `object` has a member that is not `known`. `what` is
/// the object's name in the message.
void refuse_unknown_members(const nlohmann::json& object, const std::set<std::string>& known,
                            const std::string& what, const std::string& name);

/// Reads an identity whose list of fields is `fields`. Throws an Error if a field is unknown or has
/// another type.
template <typename Identity, typename Fields>
Identity read_fields(const Fields& fields, const nlohmann::json& object, const std::string& name) {
  Identity identity;
  fields(identity, IdentityReader{object, name});
  std::set<std::string> known;
  fields(identity, [&](const char* key, const auto&) { known.insert(key); });
  refuse_unknown_members(object, known, "the identity", name);
  return identity;
}

template <typename Identity, typename Fields>
nlohmann::json write_fields(const Fields& fields, const Identity& identity) {
  nlohmann::json object = nlohmann::json::object();
  fields(identity, IdentityWriter{object});
  return object;
}

}  // namespace fedsmooth
