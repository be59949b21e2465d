// IDX, the format of MNIST's files: two zero bytes, a type, the number of axes, their sizes as four
// bytes each (big-endian), then the values in row-major order.
// http://yann.lecun.com/exdb/mnist
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// Parses a file of unsigned bytes with one to four axes. Throws an Error that begins with `name`
/// for another type, an empty axis, or a file that is shorter or longer than its sizes say.
Array parse_idx(std::string_view bytes, const std::string& name);

}  // namespace fedsmooth
