#include "fedsmooth/federated/aggregate.h"

#include <fmt/format.h>

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
FEDSMOOTH_VECTOR_CLONES bool all_within(const float* values, int64_t count, float largest) {
  int32_t beyond = 0;
  for (int64_t i = 0; i < count; ++i) {
    beyond |= static_cast<int32_t>(!(std::fabs(values[i]) <= largest));
  }
  return beyond == 0;
}

}  // namespace

std::optional<std::string> out_of_bounds(const Weights& weights,
                                         const std::vector<Parameter>& known, ValueBounds bounds) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const float largest = known[i].trained ? bounds.trained : bounds.statistic;
    const float* values = weights[i].floats();
    const int64_t count = weights[i].count();
    if (all_within(values, count, largest)) {
      if (!known[i].is_variance() || *std::min_element(values, values + count) >= 0) continue;
      return known[i].name + " is below zero";
    }
    if (!all_within(values, count, FLT_MAX)) return known[i].name + " is not finite";
    return fmt::format("{} is beyond {:g}", known[i].name, largest);
  }
  return {};
}

SumSizes::SumSizes(const Weights& like, const std::vector<Parameter>& known) {
  for (size_t i = 0; i < like.size(); ++i) {
    (known[i].trained ? trained : statistics) += like[i].count();
    if (!known[i].trained) is_variance.resize(statistics, known[i].is_variance());
  }
}

void add_scaled(const float* values, int64_t count, double scale, bool trained, long long* words) {
  for (int64_t i = 0; i < count; ++i) {
    if (trained) {
      words[i] += std::llrint(scale * values[i]);
    } else {
      add_wide(std::rint(scale * values[i]), words + kWideWords * i);
    }
  }
}

void divide_sums(const long long* words, int64_t count, double share, bool trained, float* out) {
  if (trained) return divide(words, share, out, count);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(wide_value(words + kWideWords * i) / share);
  }
}

void FixedPointSum::add(const Weights& weights, const std::vector<Parameter>& known, double share) {
  const SumSizes sizes(weights, known);
  words_.resize(sizes.words(), 0);
  long long *of_trained = words_.data(), *of_statistics = of_trained + sizes.trained;
  const double scale = share * kUnit;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t count = weights[i].count();
    const bool trained = known[i].trained;
    add_scaled(weights[i].floats(), count, scale, trained, trained ? of_trained : of_statistics);
    (trained ? of_trained : of_statistics) += trained ? count : kWideWords * count;
  }
  share_ += std::llrint(scale);
}

void FixedPointSum::add(const FixedPointSum& other) {
  add(other.words_.data(), std::ssize(other.words_), other.share_);
}

void FixedPointSum::add(const long long* words, int64_t count, int64_t share) {
  if (words_.empty()) {
    words_.assign(words, words + count);
  } else {
    for (int64_t i = 0; i < count; ++i) words_[i] += words[i];
  }
  share_ += share;
}

double FixedPointSum::kept_share() const { return static_cast<double>(share_) / kUnit; }

Weights FixedPointSum::average(const Weights& like, const std::vector<Parameter>& known) const {
  check(share_ > 0, "FixedPointSum: nothing was kept");
  const long long *of_trained = words_.data(),
                  *of_statistics = of_trained + SumSizes(like, known).trained;
  Weights out;
  for (size_t i = 0; i < like.size(); ++i) {
    Array& w = out.emplace_back(like[i].sizes());
    const bool trained = known[i].trained;
    divide_sums(trained ? of_trained : of_statistics, w.count(), static_cast<double>(share_),
                trained, w.floats());
    (trained ? of_trained : of_statistics) += trained ? w.count() : kWideWords * w.count();
  }
  return out;
}

}  // namespace fedsmooth
