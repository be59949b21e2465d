// A noise law is one object: how noisy copies are drawn, the norm of the radii that votes under it
// certify, how large these are, and its name in tables. Whatever draws noise or turns probabilities
// into radii is given a law and asks it; nothing assumes one. An engine states which laws it draws
// and refuses all others (see make_sampler()).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

enum class Norm { kL2, kLinf, kL1 };

/// The largest noise level at which sigma times a normal number stays within single precision.
inline constexpr double kLargestSigma = 1e30;

/// Function that writes copies noisy[i] = x + e_(first + i) for i < count, where e_j is sample j of
/// the stream: x is [C, H, W], noisy [>= count, C, H, W]. Rows from `count` on stay as they are. A
/// copy with a value that is not a number votes for no class. Several threads may call one source.
using NoiseSource =
    std::function<void(const Array& x, Stream stream, int64_t first, int64_t count, Array& noisy)>;

/// Each law is one constant below; laws are compared by their address.
struct NoiseLaw {
  std::string_view name;  // in tables
  Norm norm;
  double max_sigma;
  /// Returns the function that draws copies for `sigma`, which is positive and at most max_sigma.
  /// Null for a law that only older tables have.
  NoiseSource (*draws_at)(double sigma);
  /// Returns the radius, rounded down, within which a class of probability p >= p_lower >= 1/2
  /// stays the answer.
  double (*radius)(double sigma, double p_lower);
  /// Returns the radius within which a class of probability p >= p_lower stays the answer if no
  /// other class has a probability above p_upper; 0 unless p_lower is above p_upper.
  double (*radius_between)(double sigma, double p_lower, double p_upper);
  /// Returns the probability, rounded up, above which a class is certified within `radius`.
  double (*needed_probability)(double sigma, double radius);
  /// Returns the radius, rounded down, within which an event of probability at most p_upper stays
  /// below probability `limit`; 0 unless p_upper is below it. Null: not known for this law.
  double (*radius_below)(double sigma, double p_upper, double limit) = nullptr;
  /// Returns the probability, rounded up, that an event must have so that its probability stays at
  /// least p >= 1/2 when the image moves by at most `epsilon`, finite and not negative, in the
  /// law's norm. Null: not known for this law, which then calibrates no conformal sets.
  double (*shifted_level)(double sigma, double p, double epsilon) = nullptr;
};

/// N(0, sigma^2 I) by add_noise(): the sum is rounded to fp32.
extern const NoiseLaw kFloatNoise;
/// N(0, sigma^2 I) with normals of at most 6.66, the law of older tables.
extern const NoiseLaw kCutFloatNoise;
/// N(0, sigma^2 I) without rounding, see exact_noise.h.
extern const NoiseLaw kExactNoise;

/// A law that tables can name, and its word in options.
struct KnownLaw {
  const NoiseLaw& law;
  std::string_view option;  // value of certify.noise; empty for a law that only older tables have
};
/// Returns all laws of this version.
std::span<const KnownLaw> known_laws();

/// Returns the law that has this name in tables; null if none has.
const NoiseLaw* find_law(std::string_view name);
/// Returns the name of every known law in tables, with commas between them.
std::string list_laws();

/// Returns the law that an option names. Throws an Error that lists the words of options if none
/// has this one.
const NoiseLaw& law_of_option(std::string_view option);
/// Returns the word by which options name a law. Throws an Error for a law that only older tables
/// have.
std::string_view option_of_law(const NoiseLaw& law);

/// Returns the law that continues a table of `law`: the law itself, unless only older tables have
/// it.
const NoiseLaw& drawn_today(const NoiseLaw& law);

}  // namespace fedsmooth
