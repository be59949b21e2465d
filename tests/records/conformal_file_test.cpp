#include "fedsmooth/records/conformal_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/file.h"
#include "tests/folder.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

ConformalCalibration example() {
  ConformalCalibration c;
  c.subject.model_sha256 = "m";
  c.subject.fingerprint = "f";
  c.subject.base = "cpu";
  c.subject.sigma = 0.25;
  c.subject.seed = 18446744073709551615u;
  c.subject.images = 88;
  c.noise = &kExactNoise;
  c.epsilon = 0.25;
  c.coverage = 0.9;
  c.quantile = 0.7123456789012345;
  c.test = {.images = 100, .coverage = 0.93, .mean_size = 1.5, .empty = 1};
  return c;
}

std::string written() {
  const auto file = std::filesystem::temp_directory_path() /
                    ("conformal_" + std::to_string(::getpid()) + ".json");
  write_conformal(file, example());
  std::string text = read_file(file);
  std::filesystem::remove(file);
  return text;
}

// With one member replaced, or removed if it is null.
std::string refusal_with(const std::string& key, const json& value) {
  json object = json::parse(written());
  json& place = object["subject"].contains(key) ? object["subject"] : object;
  place[key] = value;
  if (value.is_null()) place.erase(key);
  return refusal([&] { parse_conformal(object.dump(), "c.json"); });
}

TEST(ConformalFileTest, ReadsBackBitForBit) {
  const ConformalCalibration c = parse_conformal(written(), "c.json");
  EXPECT_EQ(c.subject.to_json(), example().subject.to_json());
  EXPECT_EQ(c.noise, &kExactNoise);
  EXPECT_EQ(c.epsilon, 0.25);
  EXPECT_EQ(c.coverage, 0.9);
  EXPECT_EQ(c.quantile, 0.7123456789012345);
  ASSERT_TRUE(c.test);
  EXPECT_EQ(to_json(*c.test), to_json(*example().test));
}

TEST(ConformalFileTest, UnknownFieldsAreRefused) {
  for (const auto& [place, what] :
       {std::pair{"", "the file"}, {"/subject", "the identity"}, {"/test", "\"test\""}}) {
    json object = json::parse(written());
    object[json::json_pointer(place)]["colour"] = "red";
    const std::string refused = refusal([&] { parse_conformal(object.dump(), "c.json"); });
    EXPECT_EQ(refused.find(std::string("c.json: ") + what + " has \"colour\", which this version"),
              0U)
        << refused;
  }
}

TEST(ConformalFileTest, HostileFilesAreRefusedInOneLine) {
  struct Case {
    std::string key;
    json value;
    std::string message;
  };
  for (const auto& [key, value, message] : std::vector<Case>{
           {"fedsmooth", "certificates", "c.json: is not a file of conformal sets"},
           {"subject", 7, "c.json: is not a file of conformal sets"},
           {"quantile", -1.5, "c.json: \"quantile\" is -1.5, which is negative"},
           {"quantile", "x", "c.json: "},
           {"quantile", nullptr, "c.json: has no \"quantile\""},
           {"coverage", 1.0, "c.json: coverage=1: must be at least 0.5 and below 1"},
           {"epsilon", -1, "c.json: epsilon=-1: must not be negative"},
           {"epsilon", 9, "c.json: epsilon=9: is too large beside sigma=0.25"},
           {"sigma", 0, "c.json: sigma=0: must be positive"},
           {"sigma", nullptr, "c.json: has no \"sigma\""},
           {"noise", "float", "c.json: \"noise\" is \"float\", which this version does not draw"},
           {"images", 87, "c.json: 87 calibration images are too few; at least 88 are needed"},
           {"images", 1e300, "c.json: "},
           {"model_sha256", nullptr, "c.json: has no \"model_sha256\""},
       }) {
    const std::string what = refusal_with(key, value);
    EXPECT_EQ(what.rfind(message, 0), 0U) << key << ": " << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
  EXPECT_NE(refusal([] { parse_conformal("[]", "c.json"); }), "(nothing was refused)");
  EXPECT_NE(refusal([] { parse_conformal("", "c.json"); }), "(nothing was refused)");
}

}  // namespace
}  // namespace fedsmooth
