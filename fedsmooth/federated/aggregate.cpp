#include "fedsmooth/federated/aggregate.h"

#include <ATen/ATen.h>

#include <cmath>

#include "fedsmooth/base/vector_clones.h"

namespace fedsmooth {
namespace {

bool usable(const Weights& weights) {
  for (const Tensor& w : weights) {
    // Written so that NaN fails.
    if (!(w.abs().max().item<float>() <= FixedPointSum::kLargest)) return false;
  }
  return true;
}

FEDSMOOTH_VECTOR_CLONES void divide(const long long* sums, double share, float* out,
                                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(static_cast<double>(sums[i]) / share);
  }
}

}  // namespace

bool FixedPointSum::add(const Weights& weights, double share) {
  if (!usable(weights)) {
    ++dropped_;
    return false;
  }
  int64_t size = 0;
  for (const Tensor& w : weights) size += w.numel();
  sums_.resize(size, 0);
  long long* sum = sums_.data();
  const double scale = share * kUnit;
  for (const Tensor& w : weights) {
    const Tensor dense = w.contiguous();
    const float* value = dense.data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) *sum++ += std::llrint(scale * value[i]);
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
  TORCH_CHECK(share_ > 0, "FixedPointSum: nothing was kept");
  Weights out;
  const long long* sum = sums_.data();
  const auto share = static_cast<double>(share_);
  for (const Tensor& shape : like) {
    Tensor w = at::empty(shape.sizes());
    divide(sum, share, w.data_ptr<float>(), w.numel());
    sum += w.numel();
    out.push_back(w);
  }
  return out;
}

}  // namespace fedsmooth
