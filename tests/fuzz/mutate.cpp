#include "tests/fuzz/mutate.h"

#include <zlib.h>

#include <array>
#include <cstring>

namespace fedsmooth {
namespace {

constexpr size_t kLongestSlice = 64;
constexpr size_t kMostRepeats = 5000;  // deep nesting, long names

bool chance(Random& random, size_t one_in) { return below(random, one_in) == 0; }

char interesting_byte(Random& random) {
  constexpr std::string_view kBytes("\x00\xff\x7f\x80\n\t\"\\[]{},:.-0", 17);
  return chance(random, 2) ? kBytes[below(random, kBytes.size())] : static_cast<char>(random());
}

std::string slice(const std::string& bytes, Random& random) {
  return bytes.substr(below(random, bytes.size() + 1), 1 + below(random, kLongestSlice));
}

void mutate_once(std::string& bytes, const std::vector<std::string>& seeds, Random& random) {
  const size_t place = below(random, bytes.size() + 1);
  switch (below(random, 9)) {
    case 0:
      if (place < bytes.size()) bytes[place] ^= static_cast<char>(1 << below(random, 8));
      break;
    case 1:
      if (place < bytes.size()) bytes[place] = interesting_byte(random);
      break;
    case 2:
      bytes.resize(place);
      break;
    case 3:
      bytes.insert(place, 1 + below(random, 8), interesting_byte(random));
      break;
    case 4:
      bytes.erase(place, 1 + below(random, kLongestSlice));
      break;
    case 5:
      bytes.insert(place, slice(bytes, random));
      break;
    case 6:
      bytes.insert(place, slice(seeds[below(random, seeds.size())], random));
      break;
    case 7: {
      const std::string& other = seeds[below(random, seeds.size())];
      bytes = bytes.substr(0, place) + other.substr(below(random, other.size() + 1));
      break;
    }
    case 8:
      if (chance(random, 8) && place < bytes.size()) {
        bytes.insert(place, 1 + below(random, kMostRepeats), bytes[place]);
      }
      break;
  }
}

void replace_number(std::string& text, Random& random) {
  constexpr std::array kNumbers = {"0",
                                   "-1",
                                   "1",
                                   "1e308",
                                   "1e999",
                                   "-1e-320",
                                   "nan",
                                   "inf",
                                   "0.5",
                                   "2147483648",
                                   "4294967296",
                                   "1099511627776",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "18446744073709551615",
                                   "18446744073709551616"};
  constexpr const char* kDigits = "0123456789";
  const size_t begin = text.find_first_of(kDigits, below(random, text.size() + 1));
  if (begin == std::string::npos) return;
  const size_t end = text.find_first_not_of("0123456789.e", begin);
  text.replace(begin, end == std::string::npos ? end : end - begin,
               kNumbers[below(random, kNumbers.size())]);
}

uint32_t big_endian(const std::string& bytes, size_t place) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[place + i]);
  return value;
}

// A PNG is a signature of eight bytes, then chunks: length, type, data, sum of type and data.
void correct_png_sums(std::string& bytes) {
  for (size_t place = 8; place + 12 <= bytes.size();) {
    const size_t length = big_endian(bytes, place);
    if (length > bytes.size() - place - 12) return;
    const auto* covered = reinterpret_cast<const Bytef*>(bytes.data() + place + 4);
    const auto sum = static_cast<uint32_t>(crc32(0, covered, static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i) {
      bytes[place + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    }
    place += 12 + length;
  }
}

std::string with_length(const std::string& header, const std::string& data, uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

}  // namespace

size_t below(Random& random, size_t count) { return random() % count; }

std::string mutate_bytes(const std::string& valid, const std::vector<std::string>& seeds,
                         Random& random) {
  std::string bytes = valid;
  for (size_t left = 1 + below(random, 4); left > 0; --left) mutate_once(bytes, seeds, random);
  return bytes;
}

std::string mutate_text(const std::string& valid, const std::vector<std::string>& seeds,
                        Random& random) {
  if (chance(random, 2)) return mutate_bytes(valid, seeds, random);
  std::string text = valid;
  replace_number(text, random);
  return chance(random, 2) ? text : mutate_bytes(text, seeds, random);
}

std::string mutate_png(const std::string& valid, const std::vector<std::string>& seeds,
                       Random& random) {
  std::string bytes = mutate_bytes(valid, seeds, random);
  if (chance(random, 2)) correct_png_sums(bytes);
  return bytes;
}

std::string mutate_safetensors(const std::string& valid, const std::vector<std::string>& seeds,
                               Random& random) {
  uint64_t length = 0;
  std::memcpy(&length, valid.data(), 8);
  const std::string header = valid.substr(8, length), data = valid.substr(8 + length);
  switch (below(random, 4)) {
    case 0:
      return mutate_bytes(valid, seeds, random);
    case 1: {
      const uint64_t lengths[] = {0,
                                  length - 1,
                                  length + 1,
                                  length + data.size(),
                                  length + data.size() + 1,
                                  ~uint64_t{0},
                                  ~uint64_t{7},
                                  random()};
      return with_length(header, data, lengths[below(random, std::size(lengths))]);
    }
    default: {
      const std::string damaged = mutate_text(header, {header}, random);
      return with_length(damaged, data, damaged.size());
    }
  }
}

}  // namespace fedsmooth
