// A case for every field of an identity: its key and a value. A field that is added without a case
// fails to compile.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <type_traits>

#include "fedsmooth/records/certificate_identity.h"

namespace fedsmooth {

template <typename Identity>
struct FieldCase {
  const char* key;
  void (*set)(Identity& identity);
};

template <typename T>
constexpr bool kIsField = std::is_same_v<T, SubjectIdentity>;
template <typename T>
constexpr bool kIsField<std::optional<T>> = true;

// Converts to whatever a field of an identity is.
struct AnyField {
  template <typename T>
  requires kIsField<T>
  operator T() const;
};

/// Returns the number of members and bases of an identity: how many values initialise it.
template <typename Identity, typename... Values>
constexpr size_t field_count() {
  if constexpr (requires { Identity{Values{}..., AnyField{}}; }) {
    return field_count<Identity, Values..., AnyField>();
  } else {
    return sizeof...(Values);
  }
}

/// The cases of the fields that every identity has: a majority of two groups.
template <typename Identity>
constexpr auto subject_cases() {
  using I = Identity&;
  return std::to_array<FieldCase<Identity>>({
      {"model_sha256",
       [](I i) {
         i.model_sha256 = digest_groups({"a", "b"});
       }},
      {"members",
       [](I i) {
         i.members = {"a", "b"};
       }},
      {"groups", [](I i) { i.groups = 2; }},
      {"data", [](I i) { i.data = "shapes"; }},
      {"data_sha256", [](I i) { i.data_sha256 = "d"; }},
      {"held_out", [](I i) { i.held_out = 5; }},
      {"sigma", [](I i) { i.sigma = 0.25; }},
      {"seed",
       [](I i) {
         i.seed = derive_seed(3, digest_groups({"a", "b"}), "d");
       }},
      {"every", [](I i) { i.every = 20; }},
      {"limit", [](I i) { i.limit = 0; }},
      {"images", [](I i) { i.images = 100; }},
      {"fingerprint", [](I i) { i.fingerprint = "f"; }},
      {"base", [](I i) { i.base = "cpu"; }},
  });
}
static_assert(subject_cases<SubjectIdentity>().size() == field_count<SubjectIdentity>(),
              "a field of SubjectIdentity has no case");

/// Returns subject_cases() and then `own`, the cases of the fields that only this identity has.
template <typename Identity, size_t count>
constexpr auto all_cases(const FieldCase<Identity> (&own)[count]) {
  static_assert(1 + count == field_count<Identity>(), "a field of the identity has no case");
  constexpr auto kShared = subject_cases<Identity>();
  std::array<FieldCase<Identity>, kShared.size() + count> all{};
  for (size_t i = 0; i < kShared.size(); ++i) all[i] = kShared[i];
  for (size_t i = 0; i < count; ++i) all[kShared.size() + i] = own[i];
  return all;
}

/// Returns an identity with a value in every field, or in all but `missing`.
template <typename Identity, size_t count>
Identity full_identity(const std::array<FieldCase<Identity>, count>& cases,
                       const std::string& missing = "") {
  Identity identity;
  for (const FieldCase<Identity>& field : cases) {
    if (field.key != missing) field.set(identity);
  }
  return identity;
}

}  // namespace fedsmooth
