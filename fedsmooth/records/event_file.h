// TensorBoard's event files. A file is a sequence of records: a length, its CRC-32C, the bytes and
// their CRC-32C. The bytes are a protocol buffer of time, step and named numbers.
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

/// Returns the record that a file begins with. `time` is in seconds since 1970.
std::string format_event_version(double time);
/// Returns the record of one step's numbers; numbers that are not finite are left out. `time` is in
/// seconds since 1970.
std::string format_event(double time, int64_t step, const std::vector<Scalar>& scalars);

/// Returns the CRC-32C (Castagnoli) of the bytes, without the mask that records apply.
uint32_t crc32c(std::string_view bytes);

}  // namespace fedsmooth
