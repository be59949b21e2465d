// The parts of a stage, as a set. Each engine states the parts that it computes as one constant and
// refuses a stage that has any other. So every engine refuses a part that is added here until it
// states it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Parts in the order in which a stage applies them. A property that an engine may lack, such as a
/// convolution's `standardize`, is a part of its own beside that of the layer.
enum class Part : uint8_t {
  kNormalize,
  kConv,
  kStandardize,  // the property of a convolution
  kLinear,
  kSubsample,
  kBatchNorm,
  kGroupNorm,
  kSum,
  kRelu,
  kLeakyRelu,
  kSilu,
  kGelu,
  kMaxPool,
  kAvgPool,
  kDropout,
  kUnknownProperty  // the layer has a property that its kind does not have; every engine refuses it
};

class Parts {
 public:
  constexpr Parts() = default;
  constexpr Parts(std::initializer_list<Part> parts) {
    for (const Part part : parts) bits_ |= bit(part);
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(Part part) const { return (bits_ & bit(part)) != 0; }
  /// Returns the parts of `a` and those of `b`.
  friend constexpr Parts operator|(Parts a, Parts b) { return Parts(a.bits_ | b.bits_); }
  /// Returns the parts of `a` that `b` does not have.
  friend constexpr Parts operator-(Parts a, Parts b) { return Parts(a.bits_ & ~b.bits_); }
  bool operator==(const Parts&) const = default;

 private:
  explicit constexpr Parts(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t bit(Part part) { return uint32_t{1} << static_cast<int>(part); }

  uint32_t bits_ = 0;
};

/// Returns the names in the order of the parts, such as "conv, batch-norm, sum, relu".
std::string to_string(Parts parts);

/// Returns the parts that a layer adds to a stage. A residual block adds kSum; the layers inside it
/// have stages of their own.
Parts parts_of(const Layer& layer);

}  // namespace fedsmooth
