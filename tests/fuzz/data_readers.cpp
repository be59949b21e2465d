// Readers of data sets and of the archives that they come in.
#include <cstdio>  // jpeglib.h uses FILE without including it

#include <jpeglib.h>
#include <png.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fedsmooth/base/inflate.h"
#include "fedsmooth/data/idx.h"
#include "fedsmooth/data/npz.h"
#include "fedsmooth/data/sources.h"
#include "fedsmooth/data/tar.h"
#include "fedsmooth/data/zip.h"
#include "tests/data/archives.h"
#include "tests/folder.h"
#include "tests/fuzz/readers.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

using Strings = std::vector<std::string>;

constexpr int kSide = 24;

// A pattern that compresses badly enough to fill the file with symbols of all kinds.
std::string pixels(int channels) {
  std::string bytes;
  for (int i = 0; i < kSide * kSide * channels; ++i) {
    bytes += static_cast<char>(i % 7 == 0 ? i * i : i);
  }
  return bytes;
}

std::string encode_png(png_uint_32 format, int channels, int colors) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = kSide;
  image.format = format;
  image.colormap_entries = colors;
  std::string rows = pixels(channels);
  for (char& byte : rows) {
    if (colors > 0) byte = static_cast<char>(static_cast<unsigned char>(byte) % colors);
  }
  const std::string palette(4 * 256, '\x55');
  std::string bytes(1 << 16, '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, rows.data(), 0, palette.data())) {
    throw std::logic_error(image.message);
  }
  bytes.resize(size);
  return bytes;
}

Strings png_seeds() {
  return {encode_png(PNG_FORMAT_RGB, 3, 0), encode_png(PNG_FORMAT_GRAY, 1, 0),
          encode_png(PNG_FORMAT_RGB_COLORMAP, 1, 16)};
}

std::string encode_jpeg(int channels, bool progressive) {
  jpeg_error_mgr errors;
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = info.image_height = kSide;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::string rows = pixels(channels);
  while (info.next_scanline < info.image_height) {
    auto* row = reinterpret_cast<unsigned char*>(rows.data()) +
                size_t{info.next_scanline} * kSide * channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  std::free(buffer);
  return bytes;
}

Strings jpeg_seeds() {
  return {encode_jpeg(3, false), encode_jpeg(3, true), encode_jpeg(1, false)};
}

void read_image_bytes(const std::string& bytes) { decode_image(bytes, "image"); }

constexpr size_t kBatchBytes = 10'000 * 3073;

// A batch is 30 MB, too much to write for every run: most are short, a few have one label changed.
std::string mutate_cifar10(const std::string& valid, const Strings& /*seeds*/, Random& random) {
  if (below(random, 20) != 0) {
    const std::string short_file = valid.substr(0, 5000);
    return mutate_bytes(short_file, {short_file}, random);
  }
  std::string bytes = valid;
  bytes[3073 * below(random, 10'000)] = static_cast<char>(below(random, 12));
  return bytes;
}

// The reader takes a folder.
void read_cifar10_bytes(const std::string& bytes) {
  const fs::path folder =
      fs::temp_directory_path() / ("fedsmooth_fuzz" + std::to_string(::getpid()));
  struct Cleanup {
    const fs::path& folder;
    ~Cleanup() { remove_folder(folder); }
  } cleanup{folder};
  fs::create_directories(folder);
  std::ofstream(folder / "test_batch.bin", std::ios::binary) << bytes;
  read_cifar10(folder, Split::kTest);
}

Strings idx_seeds() { return {make_idx({3, 4, 5}, ramp_bytes(60)), make_idx({6}, ramp_bytes(6))}; }

void read_idx_bytes(const std::string& bytes) {
  const Array array = parse_idx(bytes, "x-ubyte");
  if (make_idx(array.sizes(), {reinterpret_cast<const char*>(array.bytes()),
                               static_cast<size_t>(array.count())}) != bytes) {
    throw std::logic_error("accepted, but not what was read");
  }
}

Strings array_seeds() {
  Strings seeds;
  for (const bool deflated : {false, true}) {
    const std::string labels("\0\1\2\1", 4);
    seeds.push_back(make_zip({{"x_train.npy", make_npy("|u1", {4, 3, 5}, ramp_bytes(60))},
                              {"y_train.npy", make_npy("|u1", {4}, labels)},
                              {"x_test.npy", make_npy("|u1", {1, 3, 5, 1}, ramp_bytes(15))},
                              {"y_test.npy", make_npy("<i4", {1, 1}, little(2, 4))}},
                             deflated));
  }
  return seeds;
}

// Half of the time a member is damaged before it is packed, so that its sum is right.
std::string mutate_arrays(const std::string& valid, const Strings& seeds, Random& random) {
  if (below(random, 2) == 0) return mutate_bytes(valid, seeds, random);
  NamedBytes members;
  for (const ZipMember& member : list_zip(valid, "a.npz")) {
    members.emplace_back(member.name, read_zip_member(valid, member, "a.npz"));
  }
  std::string& bytes = members[below(random, members.size())].second;
  bytes = mutate_text(bytes, {bytes}, random);
  return make_zip(members, below(random, 2) == 0);
}

// What is accepted is a data set that every job can take.
void read_array_bytes(const std::string& bytes) {
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const Dataset data = parse_arrays(bytes, split, "a.npz");
    bool good = data.images.axes() == 4 && data.images.size(0) == data.size() && data.size() > 0;
    for (const int64_t label : data.labels) good = good && label >= 0 && label < data.classes();
    if (!good) throw std::logic_error("accepted, but not a data set");
  }
}

Strings tar_seeds() {
  return {make_tar({{"a/b.bin", ramp_bytes(700)}, {"a/c.bin", "c"}, {"a/d", ""}})};
}

// Half of the time with the sum that the damaged header then has.
std::string mutate_tar(const std::string& valid, const Strings& seeds, Random& random) {
  std::string bytes = mutate_bytes(valid, seeds, random);
  if (bytes.size() < 512 || below(random, 2) == 0) return bytes;
  bytes.replace(148, 8, "        ");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[i]);
  return bytes.replace(148, 8, fmt::format("{:07o} ", sum));
}

void read_tar_bytes(const std::string& bytes) {
  for (const TarFile& file : list_tar(bytes, "a.tar")) {
    if (!file.bytes.empty() &&
        (file.bytes.data() < bytes.data() ||
         file.bytes.data() + file.bytes.size() > bytes.data() + bytes.size())) {
      throw std::logic_error("a file that is not in the archive");
    }
  }
}

Strings gzip_seeds() { return {make_gzip(ramp_bytes(5000)), make_gzip("")}; }

void read_gzip_bytes(const std::string& bytes) { gunzip(bytes, 1 << 20, "a.gz"); }

}  // namespace

std::vector<Reader> data_readers() {
  return {{"decode_image (PNG)", png_seeds, mutate_png, read_image_bytes},
          {"decode_image (JPEG)", jpeg_seeds, mutate_bytes, read_image_bytes},
          {"parse_idx", idx_seeds, mutate_bytes, read_idx_bytes},
          {"parse_arrays", array_seeds, mutate_arrays, read_array_bytes},
          {"list_tar", tar_seeds, mutate_tar, read_tar_bytes},
          {"gunzip", gzip_seeds, mutate_bytes, read_gzip_bytes},
          {"read_cifar10", [] { return Strings{std::string(kBatchBytes, '\x01')}; }, mutate_cifar10,
           read_cifar10_bytes, /*one_in=*/10}};
}

}  // namespace fedsmooth
