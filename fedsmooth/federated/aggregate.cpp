#include "fedsmooth/federated/aggregate.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/vector_clones.h"

namespace fedsmooth {
namespace {

FEDSMOOTH_VECTOR_CLONES void divide(const long long* sums, double share, float* out,
                                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(static_cast<double>(sums[i]) / share);
  }
}

// Written so that NaN fails, and without an early end, so that values go side by side.
FEDSMOOTH_VECTOR_CLONES bool all_small(const float* values, int64_t count) {
  int32_t large = 0;
  for (int64_t i = 0; i < count; ++i) {
    large |= static_cast<int32_t>(!(std::fabs(values[i]) <= FixedPointSum::kLargest));
  }
  return large == 0;
}

}  // namespace

bool usable(const Weights& weights) {
  return std::all_of(weights.begin(), weights.end(),
                     [](const Array& w) { return all_small(w.floats(), w.count()); });
}

bool FixedPointSum::add(const Weights& weights, double share) {
  if (!usable(weights)) {
    drop();
    return false;
  }
  int64_t size = 0;
  for (const Array& w : weights) size += w.count();
  sums_.resize(size, 0);
  long long* sum = sums_.data();
  const double scale = share * kUnit;
  for (const Array& w : weights) {
    const float* value = w.floats();
    for (int64_t i = 0; i < w.count(); ++i) *sum++ += std::llrint(scale * value[i]);
  }
  share_ += std::llrint(scale);
  return true;
}

void FixedPointSum::add(const FixedPointSum& other) {
  add(other.sums_.data(), static_cast<int64_t>(other.sums_.size()), other.share_, other.dropped_);
}

void FixedPointSum::add(const long long* sums, int64_t count, int64_t share, int64_t dropped) {
  if (sums_.empty()) {
    sums_.assign(sums, sums + count);
  } else {
    for (int64_t i = 0; i < count; ++i) sums_[i] += sums[i];
  }
  share_ += share;
  dropped_ += dropped;
}

double FixedPointSum::kept_share() const { return static_cast<double>(share_) / kUnit; }

Weights FixedPointSum::average(const Weights& like) const {
  check(share_ > 0, "FixedPointSum: nothing was kept");
  Weights out;
  const long long* sum = sums_.data();
  const auto share = static_cast<double>(share_);
  for (const Array& shape : like) {
    Array w(shape.sizes());
    divide(sum, share, w.floats(), w.count());
    sum += w.count();
    out.push_back(w);
  }
  return out;
}

}  // namespace fedsmooth
