// The identity of a table of attacks: the "identity" in attack.json, which says what the table is
// about. An attack continues a table only if their identities are equal.
#pragma once

#include <filesystem>

#include "fedsmooth/records/identity_fields.h"

namespace fedsmooth {

/// The attacked classifier and images, and the attack. Every field is optional, as in other
/// identities.
struct AttackIdentity : SubjectIdentity {
  std::optional<int64_t> n;                     // votes on each adversarial example
  std::optional<std::vector<double>> epsilons;  // ascending, the first is 0
  std::optional<std::string> estimator;         // attack.estimator, as are the next three
  std::optional<int64_t> steps;
  std::optional<AutomaticNumber> step_size;
  std::optional<bool> normalize;
  std::optional<int64_t> m;          // smoothing.m: noises per image
  std::optional<std::string> noise;  // certify.noise, as options name it

  /// Reads an identity; `name` is the file's, for messages. Throws an Error if a field is unknown
  /// or has another type.
  static AttackIdentity from_json(const nlohmann::json& object, const std::string& name);
  nlohmann::json to_json() const;

  /// Returns the first field in which `there` differs, with both values; empty if there is none.
  std::string difference(const AttackIdentity& there) const;
};

/// Returns the identity in the JSON beside a table of attacks. Throws an Error if there is none.
AttackIdentity read_attack_identity(const std::filesystem::path& table);

}  // namespace fedsmooth
