// IDX, the format of MNIST's files: two zero bytes, a type, the number of axes, their sizes as
// four bytes each, the largest first, then the values with the last axis closest.
// http://yann.lecun.com/exdb/mnist
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// A whole file of unsigned bytes, with one to four axes. Other types, empty axes and files that
/// are shorter or longer than their sizes say are refused; `name` is what an Error calls it.
Array parse_idx(std::string_view bytes, const std::string& name);

}  // namespace fedsmooth
