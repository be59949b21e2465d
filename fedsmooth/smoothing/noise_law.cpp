#include "fedsmooth/smoothing/noise_law.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/exact_noise.h"
#include "fedsmooth/smoothing/noise.h"
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

double gaussian_radius_below(double sigma, double p_upper, double limit) {
  const double gap = normal_quantile_below(limit) - normal_quantile_above(p_upper);
  return gap > 0 ? multiply_down(drawn_sigma(sigma), std::nextafter(gap, 0.0)) : 0.0;
}

double gaussian_shifted_level(double sigma, double p, double epsilon) {
  const double shift = epsilon == 0 ? 0 : std::nextafter(epsilon / drawn_sigma(sigma), INFINITY);
  const double z = std::max(0.0, normal_quantile_above(p)) + shift;
  return normal_cdf_above(std::nextafter(z, INFINITY));
}

NoiseSource float_noise_at(double sigma) {
  return [sigma](const Array& x, Stream stream, int64_t first, int64_t count, Array& noisy) {
    add_noise(x, sigma, stream, first, count, noisy);
  };
}

NoiseSource exact_noise_at(double sigma) {
  return [noise = std::make_shared<const ExactNoise>(sigma)](
             const Array& x, Stream stream, int64_t first, int64_t count, Array& noisy) {
    noise->add(x, stream, first, count, noisy);
  };
}

constexpr NoiseLaw gaussian(std::string_view name, double max_sigma,
                            NoiseSource (*draws_at)(double sigma)) {
  return {name,
          Norm::kL2,
          max_sigma,
          draws_at,
          gaussian_radius,
          gaussian_radius_between,
          gaussian_needed_probability,
          gaussian_radius_below,
          gaussian_shifted_level};
}

}  // namespace

constinit const NoiseLaw kFloatNoise = gaussian("float-2", kLargestSigma, float_noise_at);
constinit const NoiseLaw kCutFloatNoise = gaussian("float", kLargestSigma, nullptr);
constinit const NoiseLaw kExactNoise = gaussian("exact", ExactNoise::kMaxSigma, exact_noise_at);

std::span<const KnownLaw> known_laws() {
  static constexpr KnownLaw kLaws[] = {
      {kFloatNoise, "float"}, {kCutFloatNoise, ""}, {kExactNoise, "exact"}};
  return kLaws;
}

const NoiseLaw* find_law(std::string_view name) {
  for (const KnownLaw& known : known_laws()) {
    if (known.law.name == name) return &known.law;
  }
  return nullptr;
}

std::string list_laws() {
  std::vector<std::string_view> names;
  for (const KnownLaw& known : known_laws()) names.push_back(known.law.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const NoiseLaw& law_of_option(std::string_view option) {
  std::vector<std::string_view> options;
  for (const KnownLaw& known : known_laws()) {
    if (known.option.empty()) continue;
    if (known.option == option) return known.law;
    options.push_back(known.option);
  }
  throw Error("noise={:?}: must be {}", option, fmt::join(options, " or "));
}

std::string_view option_of_law(const NoiseLaw& law) {
  for (const KnownLaw& known : known_laws()) {
    if (&known.law == &law && !known.option.empty()) return known.option;
  }
  throw Error("noise={}: no option names this law", law.name);
}

const NoiseLaw& drawn_today(const NoiseLaw& law) {
  return &law == &kCutFloatNoise ? kFloatNoise : law;
}

}  // namespace fedsmooth
