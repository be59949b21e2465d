#include "python/src/arrays.h"

#include <cstring>

namespace fedsmooth::python {
namespace {

template <typename T>
Array copy(const Given<T>& values, Array::Type type) {
  Sizes sizes;
  for (size_t axis = 0; axis < values.ndim(); ++axis) {
    sizes.push_back(static_cast<int64_t>(values.shape(axis)));
  }
  Array made(sizes, type);
  std::memcpy(made.data(), values.data(), made.byte_count());
  return made;
}

}  // namespace

Array to_array(const Given<float>& values) { return copy(values, Array::Type::kFloat); }
Array to_array(const Given<uint8_t>& values) { return copy(values, Array::Type::kByte); }

}  // namespace fedsmooth::python
