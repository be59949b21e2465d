// The safetensors format: eight bytes of header length, a JSON header, the tensors' bytes without
// gaps. Written so that Python's safetensors package loads it; read strictly, as files come from
// anywhere.
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

/// F64, F16 and BF16 become float32. A file that is cut off, has bytes left over, overlapping or
/// missing ranges, or sizes that do not add up is an Error that starts with `name`.
Safetensors parse_safetensors(std::string_view bytes, const std::string& name);

/// float32 tensors only, in the order of their names.
std::string format_safetensors(const Safetensors& content);

}  // namespace fedsmooth
