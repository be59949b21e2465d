#include "fedsmooth/model/safetensors.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "fedsmooth/base/check.h"
#include "tests/arrays.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

std::string with_length(uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + rest;
}

std::string file(const std::string& header, const std::string& data) {
  return with_length(header.size(), header + data);
}

/// A file with one tensor called "a".
std::string one_tensor(const std::string& dtype, const std::string& shape,
                       const std::string& offsets, const std::string& data) {
  return file(fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape,
                          offsets),
              data);
}

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}

std::string refusal_of(const std::string& bytes) {
  return refusal([&] { parse_safetensors(bytes, "m"); });
}

TEST(SafetensorsTest, ReadsBackTheSameBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Array odd = Array::of({2, 3}, {0.0f, -0.0f, 1e-45f, 3.4e38f, -INFINITY, nan});
  const Safetensors content = {
      {{"odd", odd}, {"scalar", Array::full({}, 0.1f)}, {"empty", Array({0, 3})}},
      {{"key", "a \"quoted\"\nvalue"}, {"format", "pt"}}};
  const std::string bytes = format_safetensors(content);
  const Safetensors again = parse_safetensors(bytes, "m");
  EXPECT_EQ(again.metadata, content.metadata);
  ASSERT_EQ(again.tensors.size(), 3u);
  EXPECT_EQ(again.tensors.at("empty").sizes(), (Sizes{0, 3}));
  EXPECT_EQ(again.tensors.at("scalar").axes(), 0);
  EXPECT_EQ(again.tensors.at("scalar").floats()[0], 0.1f);
  EXPECT_TRUE(same_bits(again.tensors.at("odd"), odd));
  EXPECT_EQ(format_safetensors(again), bytes);
}

TEST(SafetensorsTest, WritesOnlyTheGivenPartOfAnArray) {
  const Array part = rising({4, 3}).part(1, 2);
  const Safetensors again = parse_safetensors(format_safetensors({{{"t", part}}, {}}), "m");
  EXPECT_TRUE(same_bits(again.tensors.at("t"), part));
}

TEST(SafetensorsTest, AlignsTheDataToEightBytes) {
  for (const char* name : {"a", "ab", "abc"}) {
    uint64_t length = 0;
    std::memcpy(&length, format_safetensors({{{name, Array({1})}}, {}}).data(), 8);
    EXPECT_EQ(length % 8, 0u);
  }
}

TEST(SafetensorsTest, WritesFloatsOnly) {
  EXPECT_THROW(format_safetensors({{{"a", Array::of({1})}}, {}}), Bug);
}

Array read_one(const std::string& dtype, const std::string& shape, const std::string& data) {
  const std::string offsets = fmt::format("[0,{}]", data.size());
  return parse_safetensors(one_tensor(dtype, shape, offsets, data), "m").tensors.at("a");
}

TEST(SafetensorsTest, OtherFloatsBecomeFloat32) {
  const Array expected = Array::of({2}, {1.0f, -2.5f});
  const std::string halves = bytes_of<uint16_t>({0x3c00, 0xc100});
  const std::string brain_floats = bytes_of<uint16_t>({0x3f80, 0xc020});
  EXPECT_TRUE(same_bits(read_one("F16", "[2]", halves), expected));
  EXPECT_TRUE(same_bits(read_one("BF16", "[2]", brain_floats), expected));
  EXPECT_TRUE(same_bits(read_one("F64", "[2]", bytes_of<double>({1.0, -2.5})), expected));
  EXPECT_TRUE(same_bits(read_one("F32", "[2]", bytes_of<float>({1.0f, -2.5f})), expected));
}

// IEEE 754's binary16: zeros, subnormals, the smallest and largest normal numbers, what is none.
TEST(SafetensorsTest, HalvesAreReadExactly) {
  const Array found = read_one("F16", "[10]",
                               bytes_of<uint16_t>({0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3555,
                                                   0x7bff, 0x7c00, 0xfc00, 0x7e00}));
  const std::vector<float> expected = {0.0f,        -0.0f,    0x1p-24f, -0x3ffp-24f, 0x1p-14f,
                                       0x1.554p-2f, 65504.0f, INFINITY, -INFINITY};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found.floats()[i], expected[i]) << i;
    EXPECT_EQ(std::signbit(found.floats()[i]), std::signbit(expected[i])) << i;
  }
  EXPECT_TRUE(std::isnan(found.floats()[9]));
}

TEST(SafetensorsTest, IntegersStayIntegers) {
  const Array tensor = read_one("I64", "[1]", bytes_of<int64_t>({(int64_t{1} << 53) + 1}));
  EXPECT_EQ(tensor.type(), Array::Type::kInteger);
  EXPECT_EQ(tensor.integers()[0], (int64_t{1} << 53) + 1);
}

TEST(SafetensorsTest, RefusesAFileWithoutAHeader) {
  EXPECT_EQ(refusal_of(""), "m: 0 bytes are not a safetensors file");
  EXPECT_EQ(refusal_of("1234567"), "m: 7 bytes are not a safetensors file");
}

TEST(SafetensorsTest, RefusesAHeaderThatIsLongerThanTheFile) {
  EXPECT_EQ(refusal_of(with_length(3, "{}")),
            "m: a header of 3 bytes in a file of 10; cut off, or no safetensors file");
  EXPECT_EQ(refusal_of(with_length(~uint64_t{0}, "{}")),
            "m: a header of 18446744073709551615 bytes in a file of 10; cut off, or no "
            "safetensors file");
}

TEST(SafetensorsTest, RefusesAHugeHeader) {
  const std::string header = "{}" + std::string(100'000'000, ' ');
  EXPECT_EQ(refusal_of(file(header, "")),
            "m: a header of 100000002 bytes in a file of 100000010; cut off, or no safetensors "
            "file");
}

TEST(SafetensorsTest, RefusesAHeaderThatIsNotAnObject) {
  for (const char* header : {"", "{", "[]", "3", "{}{}", "{\"a\":\xff}"}) {
    EXPECT_EQ(refusal_of(file(header, "")), "m: the header is no JSON object") << header;
  }
}

TEST(SafetensorsTest, RefusesATensorNamedTwice) {
  const std::string entry = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(refusal_of(file("{" + entry + "," + entry + "}", "1234")),
            "m: the header has \"a\" twice");
}

// A header of 7 MB, for which a parser that looks at all siblings of an entry takes minutes. The
// bound is some hundred times what it takes.
TEST(SafetensorsTest, ReadsManyTensorsInLinearTime) {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    header += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                          i == 0 ? "" : ",", i);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(refusal_of(file(header + "}", "1234"))
                  .ends_with(" starts at byte 0 of the data, expected 4"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(SafetensorsTest, RefusesAnIncompleteEntry) {
  for (const char* entry : {R"(3)", R"({})", R"({"dtype":"F32","shape":[1]})",
                            R"({"dtype":3,"shape":[1],"data_offsets":[0,4]})",
                            R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})",
                            R"({"dtype":"F32","shape":[1],"data_offsets":[4]})",
                            R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})"}) {
    EXPECT_EQ(refusal_of(file(fmt::format(R"({{"a":{}}})", entry), "1234")),
              "m: tensor \"a\": needs dtype, shape and data_offsets")
        << entry;
  }
}

TEST(SafetensorsTest, RefusesUnsupportedTypes) {
  EXPECT_EQ(refusal_of(one_tensor("U8", "[4]", "[0,4]", "1234")),
            "m: tensor \"a\": dtype \"U8\" is not supported");
  EXPECT_EQ(refusal_of(one_tensor("f32", "[1]", "[0,4]", "1234")),
            "m: tensor \"a\": dtype \"f32\" is not supported");
}

TEST(SafetensorsTest, RefusesInvalidSizes) {
  EXPECT_EQ(refusal_of(one_tensor("F32", "[-1]", "[0,4]", "1234")),
            "m: tensor \"a\": -1 is not a size");
  EXPECT_EQ(refusal_of(one_tensor("F32", "[1.0]", "[0,4]", "1234")),
            "m: tensor \"a\": 1.0 is not a size");
  EXPECT_EQ(refusal_of(one_tensor("F32", "[1]", "[-4,0]", "1234")),
            "m: tensor \"a\": -4 is not a size");
  EXPECT_EQ(refusal_of(one_tensor("F32", "[[1]]", "[0,4]", "1234")),
            "m: tensor \"a\": a list is not a size");
}

TEST(SafetensorsTest, RefusesListsNestedDeeperThanTheStack) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(refusal_of(one_tensor("F32", deep, "[0,4]", "1234")),
            "m: tensor \"a\": a list is not a size");
}

TEST(SafetensorsTest, RefusesOffsetsOutsideTheData) {
  EXPECT_EQ(refusal_of(one_tensor("F32", "[2]", "[0,8]", "1234")),
            "m: tensor \"a\": data_offsets [0, 8] lie outside the 4 bytes of data");
  EXPECT_EQ(refusal_of(one_tensor("F32", "[1]", "[4,0]", "1234")),
            "m: tensor \"a\": data_offsets [4, 0] lie outside the 4 bytes of data");
  EXPECT_EQ(refusal_of(one_tensor("F32", "[1]", "[0,18446744073709551615]", "1234")),
            "m: tensor \"a\": data_offsets [0, 18446744073709551615] lie outside the 4 bytes of "
            "data");
}

TEST(SafetensorsTest, RefusesAShapeOfAnotherSize) {
  EXPECT_EQ(refusal_of(one_tensor("F32", "[2]", "[0,4]", "1234")),
            "m: tensor \"a\": shape [2] does not fit its 4 bytes");
  EXPECT_EQ(refusal_of(one_tensor("F64", "[1]", "[0,4]", "1234")),
            "m: tensor \"a\": shape [1] does not fit its 4 bytes");
}

// 2^32 * 2^32 * 4 bytes are 0 bytes modulo 2^64.
TEST(SafetensorsTest, RefusesAShapeWhoseSizeOverflows) {
  EXPECT_EQ(refusal_of(one_tensor("F32", "[4294967296,4294967296]", "[0,0]", "")),
            "m: tensor \"a\": shape [4294967296, 4294967296] does not fit its 0 bytes");
  EXPECT_EQ(refusal_of(one_tensor("F32", "[1099511627777]", "[0,4]", "1234")),
            "m: tensor \"a\": a side of 1099511627777 is too large");
  EXPECT_EQ(refusal_of(one_tensor("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]", "1234")),
            "m: tensor \"a\": too many dimensions");
}

TEST(SafetensorsTest, RefusesAnEmptyShapeWhoseStridesOverflow) {
  EXPECT_EQ(refusal_of(one_tensor("F32", "[0,1099511627776,1099511627776]", "[0,0]", "")),
            "m: tensor \"a\": shape [0, 1099511627776, 1099511627776] does not fit its 0 bytes");
}

/// A file with tensors "a" and "b" of one float each at the given offsets.
std::string two_tensors(int64_t a, int64_t b, const std::string& data) {
  const auto entry = [](int64_t at) {
    return fmt::format(R"({{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})", at, at + 4);
  };
  return file(fmt::format(R"({{"a":{},"b":{}}})", entry(a), entry(b)), data);
}

TEST(SafetensorsTest, TheDataMayHaveAnotherOrderThanTheNames) {
  const Safetensors content = parse_safetensors(two_tensors(4, 0, bytes_of<float>({1, 2})), "m");
  EXPECT_EQ(values_of(content.tensors.at("a")), std::vector<float>{2});
  EXPECT_EQ(values_of(content.tensors.at("b")), std::vector<float>{1});
}

TEST(SafetensorsTest, RefusesGapsAndOverlapsOfTensors) {
  EXPECT_EQ(refusal_of(two_tensors(0, 2, "123456")),
            "m: tensor \"b\" starts at byte 2 of the data, expected 4");
  EXPECT_EQ(refusal_of(two_tensors(0, 0, "1234")),
            "m: tensor \"b\" starts at byte 0 of the data, expected 4");
  EXPECT_EQ(refusal_of(two_tensors(0, 8, "123456789012")),
            "m: tensor \"b\" starts at byte 8 of the data, expected 4");
  EXPECT_EQ(refusal_of(two_tensors(4, 8, "123456789012")),
            "m: tensor \"a\" starts at byte 4 of the data, expected 0");
  EXPECT_EQ(refusal_of(two_tensors(0, 4, "123456789")), "m: 1 bytes after the last tensor");
  EXPECT_EQ(refusal_of(file("{}", "1")), "m: 1 bytes after the last tensor");
}

TEST(SafetensorsTest, RefusesMetadataThatAreNotStrings) {
  EXPECT_EQ(refusal_of(file(R"({"__metadata__":[]})", "")), "m: __metadata__ is no JSON object");
  EXPECT_EQ(refusal_of(file(R"({"__metadata__":{"key":3}})", "")),
            "m: metadata \"key\" is not a string");
}

TEST(SafetensorsTest, MessagesStayOnOneLineForAnyTensorName) {
  EXPECT_EQ(refusal_of(file(R"({"a\nb":3})", "")),
            "m: tensor \"a\\nb\": needs dtype, shape and data_offsets");
}

}  // namespace
}  // namespace fedsmooth
