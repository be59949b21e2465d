#include "fedsmooth/records/attack_identity.h"

#include <gtest/gtest.h>

#include "tests/identity_cases.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

using I = AttackIdentity&;
constexpr auto kCases = all_cases<AttackIdentity>({
    {"n", [](I i) { i.n = 100; }},
    {"epsilons",
     [](I i) {
       i.epsilons = {0, 0.5};
     }},
    {"attack.estimator", [](I i) { i.estimator = "stochastic"; }},
    {"attack.steps", [](I i) { i.steps = 10; }},
    {"attack.step_size", [](I i) { i.step_size = AutomaticNumber{0.1}; }},
    {"attack.normalize", [](I i) { i.normalize = true; }},
    {"smoothing.m", [](I i) { i.m = 32; }},
    {"certify.noise", [](I i) { i.noise = "float"; }},
});

std::string refusal_of(const json& object) {
  return refusal([&] { AttackIdentity::from_json(object, "attack.json"); });
}

TEST(AttackIdentityTest, EveryFieldReadsBack) {
  const json object = full_identity(kCases).to_json();
  EXPECT_EQ(object.size(), kCases.size());
  EXPECT_EQ(AttackIdentity::from_json(object, "attack.json").to_json(), object);
}

TEST(AttackIdentityTest, EveryFieldIsCompared) {
  const AttackIdentity whole = full_identity(kCases);
  EXPECT_EQ(whole.difference(whole), "");
  for (const auto& field : kCases) {
    const AttackIdentity there = full_identity(kCases, field.key);
    const std::string dump = whole.to_json()[field.key].dump();
    const std::string found = whole.difference(there);
    EXPECT_TRUE(
        found.starts_with(std::string(field.key) + ": unset there, " + dump.substr(0, 13)) &&
        found.ends_with(" here"))
        << found;
  }
}

TEST(AttackIdentityTest, AutomaticStepsAreStatedAsInExperiments) {
  AttackIdentity identity;
  identity.step_size = AutomaticNumber{0};
  const json object = identity.to_json();
  EXPECT_EQ(object, json({{"attack.step_size", "auto"}}));
  EXPECT_EQ(AttackIdentity::from_json(object, "attack.json").step_size->value, 0);
}

TEST(AttackIdentityTest, RefusesWhatItCannotCompare) {
  EXPECT_EQ(refusal_of({{"colour", "red"}}),
            "attack.json: the identity has \"colour\", which this version does not know; read it "
            "with the version that wrote it");
  for (const char* key : {"n", "epsilons", "attack.estimator", "attack.step_size", "data"}) {
    const json wrong = {{key, json::object()}};
    EXPECT_EQ(refusal_of(wrong).find("attack.json: \"" + std::string(key) + "\""), 0U)
        << refusal_of(wrong);
  }
}

}  // namespace
}  // namespace fedsmooth
