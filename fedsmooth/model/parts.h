// What a stage consists of, as a set. Each engine states the parts that it computes, as one
// constant, and refuses a stage that has any other. So a part that is added here is refused
// everywhere until an engine states it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Parts in the order in which a stage applies them. A property that engines may lack, such as the
/// groups of a convolution, is a part of its own beside that of the layer.
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
  kUnknownProperty  // something is set in a layer that its kind does not have; no engine takes it
};

class Parts {
 public:
  constexpr Parts() = default;
  constexpr Parts(std::initializer_list<Part> parts) {
    for (const Part part : parts) bits_ |= bit(part);
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(Part part) const { return (bits_ & bit(part)) != 0; }
  /// The parts of both.
  friend constexpr Parts operator|(Parts a, Parts b) { return Parts(a.bits_ | b.bits_); }
  /// The parts of `a` that `b` does not have.
  friend constexpr Parts operator-(Parts a, Parts b) { return Parts(a.bits_ & ~b.bits_); }
  bool operator==(const Parts&) const = default;

 private:
  explicit constexpr Parts(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t bit(Part part) { return uint32_t{1} << static_cast<int>(part); }

  uint32_t bits_ = 0;
};

/// Names in the order of the parts, such as "conv, batch-norm, sum, relu".
std::string to_string(Parts parts);

/// The parts that a layer is in a stage. A residual block is a sum; what is inside it has stages of
/// its own.
Parts parts_of(const Layer& layer);

}  // namespace fedsmooth
