// Between NumPy and Array.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <vector>

#include "fedsmooth/base/array.h"

namespace fedsmooth::python {

namespace nb = nanobind;

template <typename T>
using Given = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Numpy = nb::ndarray<nb::numpy, T>;

/// A copy.
Array to_array(const Given<float>& values);
Array to_array(const Given<uint8_t>& values);

/// The same memory, kept alive by the NumPy array; T is the values' type. With the GIL.
template <typename T = float>
Numpy<T> to_numpy(const Array& values) {
  auto owner = std::make_unique<Array>(values);
  T* data = static_cast<T*>(owner->data());
  const std::vector<size_t> shape(values.sizes().begin(), values.sizes().end());
  const nb::capsule keeper(owner.get(), [](void* p) noexcept { delete static_cast<Array*>(p); });
  owner.release();
  return Numpy<T>(data, shape.size(), shape.data(), keeper);
}

}  // namespace fedsmooth::python
