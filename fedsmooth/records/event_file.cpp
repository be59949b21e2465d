#include "fedsmooth/records/event_file.h"

#include <array>
#include <cmath>
#include <cstring>

namespace fedsmooth {
namespace {

constexpr uint32_t kCastagnoli = 0x82f63b78;  // the polynomial, reflected

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kCastagnoli : 0);
    table[i] = crc;
  }
  return table;
}

// The format is little-endian, as is every machine that this runs on.
template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

// The wire types of protocol buffers.
enum Wire { kVarint = 0, kDouble = 1, kBytes = 2, kFloat = 5 };

std::string field(int number, Wire wire, const std::string& value) {
  std::string bytes = varint(number << 3 | wire);
  if (wire == kBytes) bytes += varint(value.size());
  return bytes + value;
}

// The CRC that records store. The format masks it, because the CRC of bytes that contain their own
// CRC is weak.
uint32_t masked_crc(const std::string& bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

std::string record(const std::string& event) {
  const std::string length = raw<uint64_t>(event.size());
  return length + raw(masked_crc(length)) + event + raw(masked_crc(event));
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_table();
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 255];
  return ~crc;
}

std::string format_event_version(double time) {
  return record(field(1, kDouble, raw(time)) + field(3, kBytes, "brain.Event:2"));
}

std::string format_event(double time, int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& s : scalars) {
    if (!std::isfinite(s.value)) continue;
    const std::string value = raw(static_cast<float>(s.value));
    summary += field(1, kBytes, field(1, kBytes, s.tag) + field(2, kFloat, value));
  }
  return record(field(1, kDouble, raw(time)) + field(2, kVarint, varint(step)) +
                field(5, kBytes, summary));
}

}  // namespace fedsmooth
