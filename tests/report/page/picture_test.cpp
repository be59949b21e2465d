#include "fedsmooth/report/page/picture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

Array grey_image(int64_t side, uint8_t value) {
  Array image({1, side, side}, Array::Type::kByte);
  for (int64_t i = 0; i < image.count(); ++i) image.bytes()[i] = value;
  return image;
}

// What the address says, decoded.
std::string bytes_of(const std::string& address) {
  constexpr std::string_view kStart = "data:image/png;base64,";
  EXPECT_TRUE(address.starts_with(kStart));
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : address.substr(kStart.size())) {
    if (c == '=') break;
    word = word << 6 | static_cast<uint32_t>(kDigits.find(c));
    bits += 6;
    if (bits >= 8) bytes += static_cast<char>(word >> (bits -= 8));
  }
  return bytes;
}

TEST(PictureTest, Base64IsThatOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe"), "//4=");
}

TEST(PictureTest, AnImageReadsBackAsItWas) {
  const Array colour = make_shapes(Split::kTest, 1, 0).images[0];
  EXPECT_TRUE(same_bits(decode_image(bytes_of(picture_address(colour)), "p"), colour));
  Array grey = grey_image(5, 7);
  grey.bytes()[3] = 200;
  const Array read = decode_image(bytes_of(picture_address(grey)), "p");
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < 25; ++i) EXPECT_EQ(read[c].bytes()[i], grey.bytes()[i]);
  }
}

// At mid grey and sigma = 0.1 nothing is cut but by chance 5e-7. Of 4096 values the standard
// deviation is known to 1.1%, the mean to 0.0016.
TEST(PictureTest, NoiseHasTheSigmaThatItClaims) {
  const Array noisy = with_noise(grey_image(64, 128), 0.1, 0);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < noisy.count(); ++i) {
    const double value = (noisy.bytes()[i] - 128) / 255.0;
    sum += value / 4096;
    squares += value * value / 4096;
  }
  EXPECT_NEAR(sum, 0, 5 * 0.0016);
  EXPECT_NEAR(std::sqrt(squares), 0.1, 5 * 0.0011);
  EXPECT_FALSE(same_bits(noisy, with_noise(grey_image(64, 128), 0.1, 1)));
  EXPECT_TRUE(same_bits(with_noise(grey_image(8, 128), 0, 0), grey_image(8, 128)));
}

}  // namespace
}  // namespace fedsmooth
