// gnuplot as a program: a script goes in, a picture comes out. Neither a shell nor a file name is
// involved.
#pragma once

#include <string>
#include <string_view>

namespace fedsmooth {

/// What gnuplot writes to its standard output for `script`. An Error if gnuplot is missing (with
/// the package to install) or fails (with its own message).
std::string run_gnuplot(std::string_view script);

/// one_line(text) as a gnuplot string literal. All but letters become octal escapes: gnuplot runs
/// backquoted commands inside double quotes, loses its way when several quotes follow each other
/// inside single ones, and takes a digit behind an escape for a part of it.
std::string quote_for_gnuplot(std::string_view text);

}  // namespace fedsmooth
