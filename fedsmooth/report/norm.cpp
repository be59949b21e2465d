#include "fedsmooth/report/norm.h"

#include <fmt/format.h>

#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {

Norm parse_norm(const std::string& name) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    if (name == norm_name(norm)) return norm;
  }
  throw Error("--norm={}: must be l2, linf or l1", name);
}

std::string_view norm_name(Norm norm) {
  return norm == Norm::kL2 ? "l2" : norm == Norm::kLinf ? "linf" : "l1";
}

std::string_view norm_symbol(Norm norm) {
  return norm == Norm::kL2 ? "ℓ₂" : norm == Norm::kLinf ? "ℓ∞" : "ℓ₁";
}

double radius_in(Norm norm, double l2_radius, int64_t values) {
  if (norm != Norm::kLinf || l2_radius == 0) return l2_radius;
  check(values > 0, "radius_in: images of {} values", values);
  // Root and quotient are each off by at most half a unit in the last place.
  double radius = l2_radius / std::sqrt(static_cast<double>(values));
  for (int i = 0; i < 2; ++i) radius = std::nextafter(radius, 0.0);
  return radius;
}

double radius_step(Norm norm) { return norm == Norm::kLinf ? 1.0 / 255 : 0.25; }

std::string format_step(Norm norm, double radius) {
  if (norm != Norm::kLinf) return fmt::format("{:.2f}", radius);
  const auto steps = std::llround(radius * 255);
  return steps == 0 ? "0" : fmt::format("{}/255", steps);
}

std::string format_mean(Norm norm, double radius) {
  return fmt::format("{:.{}f}", radius, norm == Norm::kLinf ? 5 : 3);
}

}  // namespace fedsmooth
