#include "fedsmooth/base/inflate.h"

#include <gtest/gtest.h>

#include "tests/data/archives.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

std::string text_of(size_t size) {
  std::string text;
  while (text.size() < size) text += fmt::format("{} ", text.size() * text.size());
  return text.substr(0, size);
}

TEST(InflateTest, UnpacksWhatZlibPacked) {
  for (const size_t size : {0, 1, 1000, 1 << 16, (1 << 16) + 1, 1'000'000}) {
    const std::string text = text_of(size);
    EXPECT_EQ(inflate_raw(deflate_bytes(text, -15), size, "x"), text) << size;
    EXPECT_EQ(gunzip(make_gzip(text), 1'000'000, "x"), text) << size;
  }
}

TEST(InflateTest, RefusesEveryOtherSize) {
  const std::string packed = deflate_bytes(text_of(1000), -15);
  for (const uint64_t size : {0ULL, 999ULL, 1001ULL, ~0ULL}) {
    EXPECT_TRUE(refusal([&] { inflate_raw(packed, size, "x"); }).starts_with("x: ")) << size;
  }
  EXPECT_EQ(refusal([&] { gunzip(make_gzip(text_of(1001)), 1000, "x"); }),
            "x: unpacks to more than 1000 bytes");
}

TEST(InflateTest, RefusesTruncatedDataAndTrailingBytes) {
  const std::string raw = deflate_bytes(text_of(1000), -15), gzip = make_gzip(text_of(1000));
  for (size_t size = 0; size < raw.size(); ++size) {
    ASSERT_NE(refusal([&] { inflate_raw(raw.substr(0, size), 1000, "x"); })[0], '(') << size;
  }
  for (size_t size = 0; size < gzip.size(); ++size) {
    ASSERT_NE(refusal([&] { gunzip(gzip.substr(0, size), 1000, "x"); })[0], '(') << size;
  }
  EXPECT_NE(refusal([&] { inflate_raw(raw + "a", 1000, "x"); })[0], '(');
  EXPECT_EQ(refusal([&] { gunzip(gzip + "a", 1000, "x"); }),
            "x: has bytes after its end; download it again");
}

}  // namespace
}  // namespace fedsmooth
