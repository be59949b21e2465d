// NumPy's .npz: a zip file whose members NAME.npy are arrays, written by numpy.savez (stored) or
// numpy.savez_compressed (deflated). Reading is strict: everything else is refused, pickled arrays
// above all, because reading a pickle runs it.
//
// A zip file is members, each behind a header, then a directory of them, then an end record. Sizes
// are taken from the directory; files of 4 GiB and more are refused.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

struct NpyArray {
  std::string type;   // NumPy's: |u1, <i8, ...
  Sizes sizes;        // at most 8, in row-major order
  std::string bytes;  // exactly as many as type and sizes say
};

/// Returns the array `member` (without .npy) of the file with these bytes. Throws an Error that
/// begins with `name`, and lists the arrays of the file if `member` is none of them.
NpyArray read_npz_member(std::string_view file, const std::string& member, const std::string& name);

/// Parses one .npy file. Throws an Error that begins with `name`.
NpyArray parse_npy(std::string_view bytes, const std::string& name);

/// Converts integers of any width and sign to int64. Throws an Error for other types and for values
/// out of range.
std::vector<int64_t> to_integers(const NpyArray& array, const std::string& name);

}  // namespace fedsmooth
