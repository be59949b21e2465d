#include <algorithm>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstdlib>

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/random.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

/// The message of the Error that `read` throws.
template <typename Function>
std::string refusal(Function read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

/// The pixels of [H, W, channels], `format` one of libpng's PNG_FORMAT_.
std::string encode_png(int64_t height, int64_t width, const void* pixels, png_uint_32 format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = format;
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_get_memory_size(image, size, 0, pixels, 0, nullptr));
  std::string bytes(size, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr));
  bytes.resize(size);
  return bytes;
}

std::string encode_png(const Array& pixels, png_uint_32 format) {
  return encode_png(pixels.size(0), pixels.size(1), pixels.data(), format);
}

std::string encode_jpeg(Array pixels, J_COLOR_SPACE colours, bool progressive) {
  jpeg_error_mgr errors;
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_height = static_cast<JDIMENSION>(pixels.size(0));
  info.image_width = static_cast<JDIMENSION>(pixels.size(1));
  info.input_components = static_cast<int>(pixels.size(2));
  info.in_color_space = colours;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    unsigned char* row = pixels[info.next_scanline].bytes();
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  std::free(buffer);
  return bytes;
}

/// A smooth picture, as JPEG is lossy on any other: uint8 [H, W, channels].
Array picture(int64_t height, int64_t width, int64_t channels) {
  Array made({height, width, channels}, Array::Type::kByte);
  uint8_t* pixel = made.bytes();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c)
        *pixel++ = static_cast<uint8_t>(3 * y + 2 * x + 40 * c);
    }
  }
  return made;
}

/// The first three channels as [3, H, W]; a single one is repeated.
Array planes(const Array& pixels) {
  const int64_t area = pixels.size(0) * pixels.size(1), channels = pixels.size(2);
  Array made({3, pixels.size(0), pixels.size(1)}, Array::Type::kByte);
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < area; ++i) {
      made.bytes()[c * area + i] = pixels.bytes()[i * channels + (channels == 1 ? 0 : c)];
    }
  }
  return made;
}

void expect_refused(const std::string& bytes, const std::string& what) {
  const std::string message = refusal([&] { decode_image(bytes, "a/b.png"); });
  EXPECT_TRUE(message.starts_with("a/b.png: ")) << message;
  EXPECT_PRED_FORMAT2(testing::IsSubstring, what, message);
}

int largest_difference(const Array& a, const Array& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  int most = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    most = std::max(most, std::abs(int{a.bytes()[i]} - int{b.bytes()[i]}));
  }
  return most;
}

TEST(ImageFileTest, ReadsAPngExactly) {
  const Array pixels = picture(20, 33, 3);
  const Array image = decode_image(encode_png(pixels, PNG_FORMAT_RGB), "a");
  EXPECT_EQ(image.type(), Array::Type::kByte);
  EXPECT_TRUE(same_bits(image, planes(pixels)));
}

TEST(ImageFileTest, RepeatsAGreyPng) {
  const Array pixels = picture(5, 7, 1);
  const Array image = decode_image(encode_png(pixels, PNG_FORMAT_GRAY), "a");
  EXPECT_TRUE(same_bits(image, planes(pixels)));
}

// libpng takes 16-bit samples for linear light unless a gAMA chunk says otherwise; other programs
// do not.
TEST(ImageFileTest, KeepsTheHighBytesOfA16BitPng) {
  const Array pixels = picture(5, 7, 1);
  std::vector<uint16_t> wide(pixels.count());
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<uint16_t>(257 * pixels.bytes()[i]);
  std::string bytes = encode_png(5, 7, wide.data(), PNG_FORMAT_LINEAR_Y);
  const size_t chunk = bytes.find("gAMA");
  ASSERT_NE(chunk, std::string::npos);
  bytes.erase(chunk - 4, 16);
  EXPECT_TRUE(same_bits(decode_image(bytes, "a"), planes(pixels)));
}

TEST(ImageFileTest, ReadsJpegsWithinTheirLoss) {
  const Array pixels = picture(20, 33, 3), grey = picture(20, 33, 1);
  for (const bool progressive : {false, true}) {
    const Array colour_image = decode_image(encode_jpeg(pixels, JCS_RGB, progressive), "a");
    EXPECT_EQ(colour_image.sizes(), (Sizes{3, 20, 33}));
    EXPECT_LE(largest_difference(colour_image, planes(pixels)), 4);
    const Array grey_image = decode_image(encode_jpeg(grey, JCS_GRAYSCALE, progressive), "a");
    EXPECT_LE(largest_difference(grey_image, planes(grey)), 4);
  }
}

TEST(ImageFileTest, DetectsTheFormatByTheContent) {
  const auto path = std::filesystem::path(testing::TempDir()) / "image_file_test.jpg";
  const Array pixels = picture(4, 4, 3);
  write_file(path, encode_png(pixels, PNG_FORMAT_RGB));
  EXPECT_TRUE(same_bits(read_image(path), planes(pixels)));
  write_file(path, "GIF89a");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, path.string() + ": neither PNG",
                      refusal([&] { read_image(path); }));
  std::filesystem::remove(path);
}

TEST(ImageFileTest, AcceptsOpaqueAlphaAndRefusesTransparentPixels) {
  Array pixels = picture(6, 6, 4);
  for (int64_t i = 3; i < pixels.count(); i += 4) pixels.bytes()[i] = 255;
  EXPECT_TRUE(same_bits(decode_image(encode_png(pixels, PNG_FORMAT_RGBA), "a"), planes(pixels)));
  pixels[3][4].bytes()[3] = 254;
  expect_refused(encode_png(pixels, PNG_FORMAT_RGBA), "alpha 254 of 255");
}

TEST(ImageFileTest, RefusesSidesAbove4096) {
  EXPECT_EQ(decode_image(encode_png(picture(1, 4096, 1), PNG_FORMAT_GRAY), "a").size(2), 4096);
  expect_refused(encode_png(picture(1, 4097, 1), PNG_FORMAT_GRAY), "4097x1 pixels");
  expect_refused(encode_jpeg(picture(4097, 1, 1), JCS_GRAYSCALE, false), "1x4097 pixels");
}

TEST(ImageFileTest, RefusesCmyk) {
  expect_refused(encode_jpeg(picture(8, 8, 4), JCS_CMYK, false), "not a valid JPEG");
}

// Each prefix ends at another point of the decoder. What may be missing is what holds no pixels: a
// PNG's last chunk (12 bytes).
TEST(ImageFileTest, RefusesEveryTruncation) {
  const std::string png = encode_png(picture(9, 9, 3), PNG_FORMAT_RGB);
  for (size_t size = 0; size < png.size() - 12; ++size) expect_refused(png.substr(0, size), "");
  for (const bool progressive : {false, true}) {
    const std::string jpeg = encode_jpeg(picture(9, 9, 3), JCS_RGB, progressive);
    for (size_t size = 0; size < jpeg.size(); ++size) expect_refused(jpeg.substr(0, size), "");
  }
}

TEST(ImageFileTest, NamesTheDecoderThatRefused) {
  const std::string png = encode_png(picture(64, 64, 3), PNG_FORMAT_RGB);
  expect_refused(png.substr(0, png.size() / 2), "not a valid PNG");
  const std::string jpeg = encode_jpeg(picture(64, 64, 3), JCS_RGB, false);
  expect_refused(jpeg.substr(0, jpeg.size() / 2), "not a valid JPEG");
}

// Damage gives an image of three planes or an Error; anything else (a crash, another exception)
// fails, above all under the sanitizers.
TEST(ImageFileTest, SurvivesDamagedBytes) {
  const std::string originals[] = {encode_png(picture(16, 16, 3), PNG_FORMAT_RGB),
                                   encode_jpeg(picture(16, 16, 3), JCS_RGB, false),
                                   encode_jpeg(picture(16, 16, 3), JCS_RGB, true)};
  const Key key = make_key(0, Purpose::kProbe);
  int refused = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    std::string bytes = originals[i % 3];
    uint32_t words[8];
    fill_words({key, i}, 0, words, 8);
    for (uint32_t j = 0; j < 2 + words[0] % 6; j += 2) {
      bytes[words[j + 1] % bytes.size()] = static_cast<char>(words[j]);
    }
    try {
      EXPECT_EQ(decode_image(bytes, "a").size(0), 3);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1500);  // a PNG's checksums catch all but damage to what is skipped
}

}  // namespace
}  // namespace fedsmooth
