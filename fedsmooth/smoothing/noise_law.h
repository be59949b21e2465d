// A noise law: its name in tables, the norm of the radii that votes under it certify, and how large
// these are. Everything that turns probabilities into radii asks the law, so that a law with
// another norm is a row here and a way to draw it.
#pragma once

#include <optional>
#include <string_view>

namespace fedsmooth {

enum class NoiseKind {
  kFloat,     // add_noise(): the sum is rounded to fp32
  kCutFloat,  // the same with normals of at most 6.66: the law of older tables, drawn no more
  kExact,     // see exact_noise.h
};

enum class Norm { kL2, kLinf, kL1 };

struct NoiseLaw {
  NoiseKind kind;
  std::string_view name;
  Norm norm;
  /// The radius, rounded down, within which a class of probability p >= p_lower >= 1/2 stays the
  /// answer.
  double (*radius)(double sigma, double p_lower);
  /// The same if no other class has a probability above p_upper; 0 unless p_lower is above it.
  double (*radius_between)(double sigma, double p_lower, double p_upper);
  /// The probability that must be exceeded for `radius`, rounded up.
  double (*needed_probability)(double sigma, double radius);
};

const NoiseLaw& law_of(NoiseKind kind);

/// The law of a name in a table, if there is one.
std::optional<NoiseKind> noise_of(std::string_view name);

}  // namespace fedsmooth
