#include "fedsmooth/records/certificate_identity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/identity_cases.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

using I = CertificateIdentity&;
constexpr auto kCases = all_cases<CertificateIdentity>({
    {"run_seed", [](I i) { i.run_seed = 3; }},
    {"n0", [](I i) { i.n0 = 100; }},
    {"n", [](I i) { i.n = 1000; }},
    {"alpha", [](I i) { i.alpha = 0.001; }},
    {"radius", [](I i) { i.radius = RadiusKind::kMulticlass; }},
    {"only_correct", [](I i) { i.only_correct = true; }},
    {"noise_bank", [](I i) { i.noise_bank = true; }},
    {"noise", [](I i) { i.noise = "exact"; }},
    {"radii",
     [](I i) {
       i.radii = {0, 0.25};
     }},
    {"beta", [](I i) { i.beta = 0.01; }},
    {"plan", [](I i) { i.plan = 0.02; }},
    {"classes", [](I i) { i.classes = 10; }},
    {"malicious", [](I i) { i.malicious = 1; }},
    {"seed_given", [](I i) { i.seed_given = true; }},
    {"shard", [](I i) { i.shard = "1/2"; }},
    {"subject",
     [](I i) { i.subject = digest_subject(full_identity(subject_cases<SubjectIdentity>())); }},
});

CertificateIdentity full_identity() { return full_identity(kCases); }

// An identity of an ensemble, which has members but no groups.
CertificateIdentity ensemble_identity() {
  CertificateIdentity i;
  i.members = {"a", "b"};
  i.model_sha256 = digest_members(*i.members);
  return i;
}

std::string refusal_of(const json& object) {
  return refusal([&] { CertificateIdentity::from_json(object, "c.json"); });
}

TEST(CertificateIdentityTest, EveryFieldReadsBack) {
  const json object = full_identity().to_json();
  EXPECT_EQ(object.size(), kCases.size());
  EXPECT_EQ(CertificateIdentity::from_json(object, "c.json").to_json(), object);
}

TEST(CertificateIdentityTest, EveryFieldIsCompared) {
  const CertificateIdentity whole = full_identity();
  EXPECT_EQ(whole.difference(whole), "");
  for (const auto& field : kCases) {
    const CertificateIdentity there = full_identity(kCases, field.key);
    EXPECT_EQ(whole.stated_difference(there), "") << field.key;
    EXPECT_NE(there.stated_difference(whole), "") << field.key;
    const std::string dump = whole.to_json()[field.key].dump();
    const std::string found = whole.difference(there);
    EXPECT_TRUE(
        found.starts_with(std::string(field.key) + ": unset there, " + dump.substr(0, 13)) &&
        found.ends_with(" here"))
        << found;
  }
}

TEST(CertificateIdentityTest, ShowsTheFirstDigitsOfDigests) {
  CertificateIdentity here, there;
  here.data_sha256 = std::string(64, 'a');
  there.data_sha256 = std::string(63, 'a') + "b";
  EXPECT_EQ(here.difference(there),
            "data_sha256: \"aaaaaaaaaaaa...\" there, \"aaaaaaaaaaaa...\" here");
}

TEST(CertificateIdentityTest, SeedsAreWrittenAsTextAndReadAsNumbersToo) {
  const CertificateIdentity whole = full_identity();
  json object = whole.to_json();
  for (const char* key : {"seed", "run_seed"}) {
    ASSERT_TRUE(object[key].is_string()) << key;
    object[key] = std::stoull(object[key].get<std::string>());
  }
  EXPECT_EQ(CertificateIdentity::from_json(object, "c.json").difference(whole), "");
}

TEST(CertificateIdentityTest, AFieldOfANewerVersionIsRefusedByName) {
  json object = full_identity().to_json();
  object["colour"] = "red";
  EXPECT_EQ(refusal_of(object),
            "c.json: the identity has \"colour\", which this version does not know; read it with "
            "the version that wrote it");
}

TEST(CertificateIdentityTest, WhatDoesNotFollowIsRefused) {
  const auto refused = [](const char* key, const json& value) {
    json object = full_identity().to_json();
    object[key] = value;
    return refusal_of(object);
  };
  EXPECT_NE(refused("data_sha256", "another").find("\"subject\" is not"), std::string::npos);
  EXPECT_NE(refused("seed", 4).find("\"seed\" is not what run_seed"), std::string::npos);
  EXPECT_NE(refused("noise", "pink").find("\"noise\" is \"pink\""), std::string::npos);
}

TEST(CertificateIdentityTest, MembersMustBeThoseOfTheModelsDigest) {
  const auto refused = [](const json& members) {
    json object = ensemble_identity().to_json();
    object["members"] = members;
    return refusal_of(object);
  };
  EXPECT_NE(refused({"a", "c"}).find("\"model_sha256\" is not that of its members"),
            std::string::npos);
  for (const json& wrong : {json({"b", "a"}), json({"a", "a"}), json({"a"}), json::array()}) {
    EXPECT_NE(refused(wrong).find("two or more SHA-256s in ascending order"), std::string::npos)
        << wrong;
  }
  for (const json& wrong : {json("a"), json({1, 2}), json::array({json::array({"a"})})}) {
    EXPECT_NE(refused(wrong).find("not a list of strings"), std::string::npos) << wrong;
  }
}

TEST(CertificateIdentityTest, GroupsMustBeThoseOfTheModelsDigest) {
  const auto refused = [](const char* key, const json& value) {
    json object = full_identity().to_json();
    object[key] = value;
    if (value.is_null()) object.erase(key);
    return refusal_of(object);
  };
  const std::string bounds = "c.json: \"groups\" must be from 2 to";
  for (const auto& [key, value, message] :
       {std::tuple<const char*, json, std::string>{"groups", 1, bounds},
        {"malicious", 2, bounds},
        {"malicious", nullptr, bounds},
        {"groups", nullptr, "c.json: \"malicious\" is there without \"groups\""},
        {"groups", 3, "c.json: \"members\" is not a list of 3 SHA-256s in ascending order"},
        {"members", {"b", "a"}, "c.json: \"members\" is not a list of 2 SHA-256s"},
        {"members", {"a", "c"}, "c.json: \"model_sha256\" is not that of its groups"}}) {
    EXPECT_EQ(refused(key, value).find(message), 0U) << refused(key, value);
  }
}

TEST(CertificateIdentityTest, TheOrderOfMembersDoesNotCount) {
  EXPECT_EQ(digest_members({"b", "a", "c"}), digest_members({"a", "b", "c"}));
  EXPECT_NE(digest_members({"a", "b"}), digest_members({"a", "b", "c"}));
  EXPECT_NE(refusal([] {
              digest_members({"a", "b", "a"});
            }).find("a is there twice"),
            std::string::npos);
  EXPECT_NE(refusal([] { digest_members({"a"}); }).find("two or more"), std::string::npos);
}

TEST(CertificateIdentityTest, SeedsDependOnRunModelAndData) {
  const uint64_t seed = derive_seed(0, "m", "d");
  EXPECT_EQ(seed, uint64_t{21761717676563531});
  EXPECT_LT(seed, uint64_t{1} << 63);
  EXPECT_NE(derive_seed(1, "m", "d"), seed);
  EXPECT_NE(derive_seed(0, "n", "d"), seed);
  EXPECT_NE(derive_seed(0, "m", "e"), seed);
}

}  // namespace
}  // namespace fedsmooth
