#include "fedsmooth/records/certificate_identity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

// A value in every field.
CertificateIdentity full_identity() {
  CertificateIdentity i;
  i.members = {"a", "b"};
  i.model_sha256 = digest_members(*i.members);
  i.data = "shapes";
  i.data_sha256 = "d";
  i.held_out = 5;
  i.sigma = 0.25;
  i.run_seed = 3;
  i.seed = derive_seed(3, *i.model_sha256, "d");
  i.every = 20;
  i.limit = 0;
  i.images = 100;
  i.fingerprint = "f";
  i.base = "cpu";
  i.n0 = 100;
  i.n = 1000;
  i.alpha = 0.001;
  i.radius = RadiusKind::kMulticlass;
  i.only_correct = true;
  i.noise_bank = true;
  i.noise = "exact";
  i.radii = {0, 0.25};
  i.beta = 0.01;
  i.plan = 0.02;
  i.classes = 10;
  i.shard = "1/2";
  i.subject = digest_subject(i);
  return i;
}

std::string refusal_of(const json& object) {
  return refusal([&] { CertificateIdentity::from_json(object, "c.json"); });
}

TEST(CertificateIdentityTest, EveryFieldReadsBack) {
  const json object = full_identity().to_json();
  EXPECT_EQ(object.size(), 26U);
  EXPECT_EQ(CertificateIdentity::from_json(object, "c.json").to_json(), object);
}

TEST(CertificateIdentityTest, EveryFieldIsCompared) {
  const CertificateIdentity whole = full_identity();
  EXPECT_EQ(whole.difference(whole), "");
  const json object = whole.to_json();
  for (const auto& [key, value] : object.items()) {
    json less = object;
    less.erase(key);
    // What follows from the erased field cannot be stated without it.
    if (key != "run_seed") less.erase("run_seed");
    if (key != "subject") less.erase("subject");
    if (key == "model_sha256") less.erase("members");
    CertificateIdentity there = CertificateIdentity::from_json(less, "c.json");
    EXPECT_EQ(whole.stated_difference(there), "") << key;
    EXPECT_NE(there.stated_difference(whole), "") << key;
    if (key != "run_seed") there.run_seed = whole.run_seed;
    if (key != "subject") there.subject = whole.subject;
    if (key == "model_sha256") there.members = whole.members;
    EXPECT_EQ(whole.difference(there), key + ": unset there, " + value.dump() + " here");
  }
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
    json object = full_identity().to_json();
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
