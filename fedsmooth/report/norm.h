// Radii in other norms from the same votes. The l2 ball of radius r around an image of d values
// contains the l_inf ball of radius r / sqrt(d) and the l1 ball of radius r, so a certificate in l2
// is also one in these norms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fedsmooth/smoothing/noise_law.h"

namespace fedsmooth {

/// Returns the norm of a name: l2, linf or l1. Throws an Error for any other name.
Norm parse_norm(const std::string& name);

/// Return the name of a norm as parse_norm() reads it, and its symbol for figures and pages.
std::string_view norm_name(Norm norm);
std::string_view norm_symbol(Norm norm);

/// Returns the radius, rounded down, that an l2 radius certifies in `norm` for images of `values`
/// numbers each. Only l_inf uses `values`.
double radius_in(Norm norm, double l2_radius, int64_t values);

/// Returns the step between the radii of published tables: 0.25, and 1/255 in l_inf.
double radius_step(Norm norm);

/// Formats a radius of a table, such as 0.25 or 2/255.
std::string format_step(Norm norm, double radius);

/// Formats a mean of radii with three decimals, five in l_inf.
std::string format_mean(Norm norm, double radius);

}  // namespace fedsmooth
