// TensorBoard's event files: records of a length, a CRC-32C, bytes and their CRC-32C; the bytes are
// a protocol buffer of time, step and named numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct Scalar {
  std::string tag;
  double value = 0.0;
};

/// The record that a file begins with. `time` is in seconds since 1970.
std::string format_event_version(double time);
/// One step's numbers; those that are not finite are left out.
std::string format_event(double time, int64_t step, const std::vector<Scalar>& scalars);

uint32_t crc32c(std::string_view bytes);

}  // namespace fedsmooth
