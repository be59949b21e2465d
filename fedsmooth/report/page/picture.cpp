#include "fedsmooth/report/page/picture.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {
namespace {

std::string encode_png(const Array& image) {
  const int64_t channels = image.size(0), area = image.size(1) * image.size(2);
  std::vector<uint8_t> rows(image.count());  // [H, W, C]
  for (int64_t i = 0; i < image.count(); ++i) {
    rows[i % area * channels + i / area] = image.bytes()[i];
  }
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.height = static_cast<png_uint_32>(image.size(1));
  header.width = static_cast<png_uint_32>(image.size(2));
  header.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = bytes.size();
  const int written =
      png_image_write_to_memory(&header, bytes.data(), &size, 0, rows.data(), 0, nullptr);
  check(written != 0, "encode_png: {}", header.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t at) -> uint32_t {
      return at < bytes.size() ? static_cast<uint8_t>(bytes[at]) : 0;
    };
    const uint32_t word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[word >> shift & 63];
  }
  const size_t missing = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - missing, missing, missing, '=');
}

std::string picture_address(const Array& image) {
  return "data:image/png;base64," + base64(encode_png(image));
}

Array with_noise(const Array& image, double sigma, uint32_t draw) {
  std::vector<float> noise(image.count());
  fill_normal({make_key(0, Purpose::kProbe)}, draw, noise.data(), image.count());
  Array noisy(image.sizes(), Array::Type::kByte);
  for (int64_t i = 0; i < image.count(); ++i) {
    const double value = image.bytes()[i] + 255 * sigma * noise[i];
    noisy.bytes()[i] = static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
  }
  return noisy;
}

}  // namespace fedsmooth
