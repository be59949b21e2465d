#include "fedsmooth/base/json.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

TEST(JsonTest, ReadsAnObject) {
  EXPECT_EQ(parse_json_object(R"({"a": [1, {"b": "]]]"}]})", "x.json")["a"][1]["b"], "]]]");
}

TEST(JsonTest, RefusesTextThatIsNotAnObject) {
  for (const char* text : {"", "5", "[1]", "{", "{\"a\": }", "\xff"}) {
    EXPECT_EQ(refusal([&] { parse_json_object(text, "x.json"); }), "x.json: is not a JSON object")
        << text;
  }
}

TEST(JsonTest, RefusesDeepNesting) {
  const auto nested = [](int depth) {
    return "{\"a\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_NO_THROW(parse_json_object(nested(63), "x.json"));
  EXPECT_EQ(refusal([&] { parse_json_object(nested(64), "x.json"); }),
            "x.json: is nested more than 64 deep");
  EXPECT_EQ(refusal([&] { parse_json_object(nested(1'000'000), "x.json"); }),
            "x.json: is nested more than 64 deep");
  // Brackets in a string are text.
  EXPECT_NO_THROW(parse_json_object("{\"a\": \"\\\"" + std::string(1000, '[') + "\"}", "x.json"));
}

TEST(JsonTest, MembersHaveTheirType) {
  const json object = {{"text", "t"}, {"count", 3}, {"number", 0.5}, {"flag", true}, {"null", {}}};
  EXPECT_EQ(find_string(object, "text", "x"), "t");
  EXPECT_EQ(find_count(object, "count", "x"), 3);
  EXPECT_EQ(find_seed(object, "count", "x"), 3U);
  EXPECT_EQ(find_number(object, "number", "x"), 0.5);
  EXPECT_EQ(find_number(object, "count", "x"), 3.0);
  EXPECT_EQ(find_flag(object, "flag", "x"), true);
  EXPECT_FALSE(find_string(object, "missing", "x"));
  EXPECT_FALSE(find_string(object, "null", "x"));
}

TEST(JsonTest, SeedsAreStringsAndReadAsNumbersToo) {
  EXPECT_EQ(seed_json(18446744073709551615u), "18446744073709551615");
  const json object = {
      {"text", "18446744073709551615"}, {"number", 7}, {"sign", "-1"}, {"more", "3x"}, {"no", ""}};
  EXPECT_EQ(find_seed(object, "text", "x"), 18446744073709551615u);
  EXPECT_EQ(find_seed(object, "number", "x"), 7U);
  for (const char* key : {"sign", "more", "no"}) {
    EXPECT_NE(refusal([&] { find_seed(object, key, "x"); }).find("not a whole number >= 0"),
              std::string::npos)
        << key;
  }
  EXPECT_NE(refusal([&] { find_count(object, "text", "x"); }), "");  // other numbers are none
}

TEST(JsonTest, MembersOfAnotherTypeAreRefused) {
  const json object = {
      {"a", json::array({1})}, {"b", -1}, {"c", "t"}, {"d", 18446744073709551615u}};
  EXPECT_EQ(refusal([&] { find_string(object, "a", "x"); }),
            "x: \"a\" is array, which is not a string");
  EXPECT_EQ(refusal([&] { find_count(object, "b", "x"); }),
            "x: \"b\" is -1, which is not a whole number >= 0");
  EXPECT_EQ(refusal([&] { find_number(object, "c", "x"); }),
            "x: \"c\" is \"t\", which is not a finite number");
  EXPECT_EQ(refusal([&] { find_count(object, "d", "x"); }),
            "x: \"d\" is 18446744073709551615, which is not below 2^63");
  EXPECT_EQ(find_seed(object, "d", "x"), 18446744073709551615u);
  EXPECT_EQ(refusal([&] { find_flag(object, "c", "x"); }),
            "x: \"c\" is \"t\", which is not true or false");
}

TEST(JsonTest, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(dump_json({{"path", "bad\xffname"}}), "{\"path\":\"bad\uFFFDname\"}");
  EXPECT_EQ(dump_json_lines({{"a", 1}}), "{\n  \"a\": 1\n}\n");
}

}  // namespace
}  // namespace fedsmooth
