// The safetensors format: eight bytes of header length, a JSON header, and the tensors' bytes
// without gaps. Python's safetensors package loads the files written here. Files may come from
// anywhere, so reading is strict.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

struct Safetensors {
  std::map<std::string, Array> tensors;         // float32, or int64 where the file says so
  std::map<std::string, std::string> metadata;  // the header's "__metadata__"
};

/// Reads a file; F64, F16 and BF16 tensors are converted to float32. Throws an Error that begins
/// with `name` if the file is cut off, has bytes left over, overlapping or missing ranges, or sizes
/// that do not add up.
Safetensors parse_safetensors(std::string_view bytes, const std::string& name);

/// Returns the bytes of a file with the tensors in the order of their names. All must be float32.
std::string format_safetensors(const Safetensors& content);

}  // namespace fedsmooth
