// Radii in other norms from the same votes. The l2 ball of radius r around an image of d values
// holds the l_inf ball of radius r / sqrt(d) and the l1 ball of radius r, so that a certificate in
// l2 is one in these too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fedsmooth/smoothing/noise_law.h"

namespace fedsmooth {

/// The norm of a name: l2, linf or l1; an Error for any other.
Norm parse_norm(const std::string& name);

/// Its name as in parse_norm(), for terminals and JSON; and for figures and pages.
std::string_view norm_name(Norm norm);
std::string_view norm_symbol(Norm norm);

/// The radius, rounded down, that an l2 radius certifies for images of `values` numbers each, which
/// only l_inf needs to know.
double radius_in(Norm norm, double l2_radius, int64_t values);

/// Between the radii of published tables: 0.25, and 1/255 in l_inf.
double radius_step(Norm norm);

/// A radius of a table, such as 0.25 or 2/255.
std::string format_step(Norm norm, double radius);

/// A mean of radii, with three decimals; five in l_inf.
std::string format_mean(Norm norm, double radius);

}  // namespace fedsmooth
