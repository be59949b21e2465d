#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h uses FILE without including it

#include <jpeglib.h>
#include <png.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

/// Called before anything is allocated: a header of a few bytes can claim any size.
void check_size(int64_t width, int64_t height, const std::string& name) {
  if (width > kLargestSide || height > kLargestSide) {
    throw Error("{}: {}x{} pixels, the largest side allowed is {}; scale it down", name, width,
                height, kLargestSide);
  }
}

// The first three channels of rows [H, W, C] as planes [3, H, W].
Array planes(const Array& rows) {
  const int64_t area = rows.size(0) * rows.size(1), channels = rows.size(2);
  Array image({3, rows.size(0), rows.size(1)}, Array::Type::kByte);
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < area; ++i) {
      image.bytes()[c * area + i] = rows.bytes()[i * channels + c];
    }
  }
  return image;
}

int smallest_alpha(const Array& rows) {
  int alpha = 255;
  for (int64_t i = 3; i < rows.count(); i += 4) alpha = std::min<int>(alpha, rows.bytes()[i]);
  return alpha;
}

struct PngReader {
  png_image image{};
  PngReader() { image.version = PNG_IMAGE_VERSION; }
  ~PngReader() { png_image_free(&image); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

Array decode_png(std::string_view bytes, const std::string& name) {
  PngReader reader;
  png_image& image = reader.image;
  const auto check = [&](int ok) {
    if (!ok) throw Error("{}: not a valid PNG: {}; write it again", name, image.message);
  };
  check(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()));
  check_size(image.width, image.height, name);

  image.format = PNG_FORMAT_RGBA;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // libpng would take 16-bit samples for linear light
  Array rows({image.height, image.width, 4}, Array::Type::kByte);
  check(png_image_finish_read(&image, nullptr, rows.data(), 0, nullptr));
  const int alpha = smallest_alpha(rows);
  if (alpha != 255) {
    throw Error("{}: has transparent pixels (alpha {} of 255); flatten it onto a background", name,
                alpha);
  }
  return planes(rows);
}

/// libjpeg reports errors by calling error_exit, which must not return. It is C, so the way out is
/// longjmp, never an exception; the two steps below therefore hold no C++ object that a jump would
/// skip, and the caller throws.
class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { leave(info); };
    // Warnings are about data that is damaged or ends early, and libjpeg's guesses at it.
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) leave(info);
    };
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool read_header(const unsigned char* bytes, unsigned long size) {
    if (setjmp(on_error_)) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, bytes, size);
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  /// Writes RGB to `rows`, height * width * 3 bytes.
  bool read_pixels(unsigned char* rows) {
    if (setjmp(on_error_)) return false;
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      unsigned char* row = rows + size_t{3} * info_.output_width * info_.output_scanline;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  int64_t width() const { return info_.image_width; }
  int64_t height() const { return info_.image_height; }
  const char* message() const { return message_; }

 private:
  [[noreturn]] static void leave(j_common_ptr info) {
    auto* self = static_cast<JpegReader*>(info->client_data);
    info->err->format_message(info, self->message_);
    longjmp(self->on_error_, 1);
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jmp_buf on_error_;
  char message_[JMSG_LENGTH_MAX] = "";
};

Array decode_jpeg(std::string_view bytes, const std::string& name) {
  JpegReader reader;
  const auto check = [&](bool ok) {
    if (!ok) throw Error("{}: not a valid JPEG: {}; write it again", name, reader.message());
  };
  check(reader.read_header(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
  check_size(reader.width(), reader.height(), name);

  Array rows({reader.height(), reader.width(), 3}, Array::Type::kByte);
  check(reader.read_pixels(rows.bytes()));
  return planes(rows);
}

}  // namespace

Array decode_image(std::string_view bytes, const std::string& name) {
  // The first bytes, not the file's ending: many a .png is a renamed .jpg.
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, name);
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes, name);
  throw Error("{}: neither PNG nor JPEG, by its first bytes; convert it", name);
}

Array read_image(const std::filesystem::path& path) {
  return decode_image(read_file(path), path.string());
}

}  // namespace fedsmooth
