#include "fedsmooth/records/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace fedsmooth {
namespace {

// RFC 3720, appendix B.4.
TEST(EventFileTest, CrcIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

// Written out by hand from the format's definition.
TEST(EventFileTest, ARecordIsAFramedProtocolBuffer) {
  const std::string bytes = format_event(1.5, 300, {{"a/b", 0.25}, {"skipped", std::nan("")}});
  const std::string event = std::string("\x09\0\0\0\0\0\0\xf8\x3f", 9) +  // time, a double
                            std::string("\x10\xac\x02", 3) +              // step, a varint
                            std::string("\x2a\x0c", 2) +                  // summary, 12 bytes
                            std::string(
                                "\x0a\x0a\x0a\x03"
                                "a/b",
                                7) +                             // value, 10 bytes: tag, 3 bytes
                            std::string("\x15\0\0\x80\x3e", 5);  // and number, a float
  ASSERT_EQ(bytes.size(), 8 + 4 + event.size() + 4);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length, event.size());
  EXPECT_EQ(bytes.substr(12, event.size()), event);
  uint32_t found = 0;
  std::memcpy(&found, bytes.data() + 12 + event.size(), 4);
  const uint32_t crc = crc32c(event);
  EXPECT_EQ(found, (crc >> 15 | crc << 17) + 0xa282ead8);
}

TEST(EventFileTest, AFileBeginsWithItsVersion) {
  const std::string bytes = format_event_version(0);
  EXPECT_EQ(bytes.substr(12 + 9, 2), "\x1a\x0d");
  EXPECT_EQ(bytes.substr(12 + 9 + 2, 13), "brain.Event:2");
}

}  // namespace
}  // namespace fedsmooth
