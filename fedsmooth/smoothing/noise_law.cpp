#include "fedsmooth/smoothing/noise_law.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

// The noise that was drawn had sigma rounded to fp32; the smaller of the two is safe.
double drawn_sigma(double sigma) {
  return std::min(sigma, static_cast<double>(static_cast<float>(sigma)));
}

// N(0, sigma^2 I): Cohen et al., theorem 1.

double gaussian_radius(double sigma, double p_lower) {
  return multiply_down(drawn_sigma(sigma), std::max(0.0, normal_quantile_below(p_lower)));
}

double gaussian_radius_between(double sigma, double p_lower, double p_upper) {
  const double gap = normal_quantile_below(p_lower) - normal_quantile_above(p_upper);
  return gap > 0 ? multiply_down(drawn_sigma(sigma) / 2, std::nextafter(gap, 0.0)) : 0.0;
}

double gaussian_needed_probability(double sigma, double radius) {
  return normal_cdf_above(radius == 0 ? 0 : std::nextafter(radius / drawn_sigma(sigma), INFINITY));
}

constexpr NoiseLaw gaussian(NoiseKind kind, std::string_view name) {
  return {
      kind, name, Norm::kL2, gaussian_radius, gaussian_radius_between, gaussian_needed_probability};
}

constexpr NoiseLaw kLaws[] = {
    gaussian(NoiseKind::kFloat, "float-2"),
    gaussian(NoiseKind::kCutFloat, "float"),
    gaussian(NoiseKind::kExact, "exact"),
};

}  // namespace

const NoiseLaw& law_of(NoiseKind kind) {
  const auto* found = std::ranges::find(kLaws, kind, &NoiseLaw::kind);
  check(found != std::end(kLaws), "law_of: an unknown kind of noise");
  return *found;
}

std::optional<NoiseKind> noise_of(std::string_view name) {
  const auto* found = std::ranges::find(kLaws, name, &NoiseLaw::name);
  return found == std::end(kLaws) ? std::nullopt : std::optional(found->kind);
}

}  // namespace fedsmooth
