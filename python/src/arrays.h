// Between NumPy and Array.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "fedsmooth/base/array.h"

namespace fedsmooth::python {

namespace nb = nanobind;

template <typename T>
using Given = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<nb::numpy, float>;

/// A copy.
Array to_array(const Given<float>& values);
Array to_array(const Given<uint8_t>& values);

/// The same memory, kept alive by the NumPy array. With the GIL.
Floats to_numpy(const Array& values);

}  // namespace fedsmooth::python
