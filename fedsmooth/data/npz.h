// NumPy's .npz: a zip file whose members NAME.npy are arrays, as numpy.savez writes them (stored)
// and numpy.savez_compressed (deflated). Read strictly: what is not one of these is refused, and a
// pickled array always, since to read a pickle is to run it.
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
  Sizes sizes;        // at most 8, last axis closest
  std::string bytes;  // exactly as many as type and sizes say
};

/// The array `member` (without .npy) of the file whose bytes these are. An Error, which begins with
/// `name`, lists the arrays that there are if it is not among them.
NpyArray read_npz_member(std::string_view file, const std::string& member, const std::string& name);

/// One .npy file.
NpyArray parse_npy(std::string_view bytes, const std::string& name);

/// Integers of any width and sign as int64; an Error for other types and for values beyond.
std::vector<int64_t> to_integers(const NpyArray& array, const std::string& name);

}  // namespace fedsmooth
