// Collects the results of a wave's clients: their weights, as a sum or one by one, and telemetry.
#include <algorithm>
#include <cmath>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/wave.h"

namespace fedsmooth {

void Wave::add_results(const std::vector<WavePart>& parts) {
  const auto terms = terms_.download(launches_.stream());
  const auto before = before_.download(launches_.stream()),
             after = after_.download(launches_.stream());
  const auto perturbation = perturbation_.download(launches_.stream());
  int64_t slot = 0;
  for (const WavePart& part : parts) {
    const std::vector<int> usable = find_usable(part, slot);
    const double epsilon = part.round.task.attack.epsilon;
    std::vector<Telemetry> of_each(part.count);
    for (size_t i = 0; i < part.count; ++i) {
      if (!usable[i]) continue;
      const int64_t client = slot + static_cast<int64_t>(i);
      of_each[i].add_steps(terms[client], task_.local.steps * task_.local.passes);
      for (int64_t b = 0; attacked() && b < shape_.batch; ++b) {
        const int64_t at = client * shape_.batch + b;
        of_each[i].add_attack(perturbation[at] / epsilon, before[at], after[at]);
      }
      part.result.telemetry.add(of_each[i]);
    }
    if (part.round.gather == Gather::kSum) {
      add_sum(part, slot, usable);
    } else {
      add_each(part, slot, usable, of_each);
    }
    slot += static_cast<int64_t>(part.count);
  }
}

// Returns which clients of a part, the first of which is at `slot`, have weights within bounds.
// Drops the others.
std::vector<int> Wave::find_usable(const WavePart& part, int64_t slot) {
  const ValueBounds bounds = part.round.bounds();
  WeightCheck check;
  check.clients = static_cast<int>(part.count);
  check.size = device_.graph.size;
  check.trained = device_.graph.trained;
  check.weights = weights_.data() + slot * check.size;
  check.largest = bounds.trained;
  check.largest_statistic = bounds.statistic;
  check.usable = usable_.data() + slot;
  check_cuda(check_weights(check, launches_.stream()), "check_weights");
  const std::vector<int> all = usable_.download(launches_.stream());
  for (size_t i = 0; i < part.count; ++i) {
    if (all[slot + i]) continue;
    const Weights weights = take(weights_, slot + static_cast<int64_t>(i), part.round.global);
    const auto why = out_of_bounds(weights, parameters(part.round.task.network), bounds);
    part.result.drop(part.round.cohort.clients[part.first + i], why.value_or("not finite"));
  }
  return {all.begin() + slot, all.begin() + slot + check.clients};
}

void Wave::add_sum(const WavePart& part, int64_t slot, const std::vector<int>& usable) {
  WeightSum sum;
  sum.clients = static_cast<int>(part.count);
  sum.size = device_.graph.size;
  sum.trained = device_.graph.trained;
  sum.count = sum_positions_.size() - statistics_;
  sum.statistics = statistics_;
  sum.weights = weights_.data() + slot * sum.size;
  sum.positions = sum_positions_.data();
  sum.scale = shares_.data() + slot;
  sum.usable = usable_.data() + slot;
  sum.sums = sums_.data();
  sum.out = sum_.data();
  check_cuda(sum_weights(sum, launches_.stream()), "sum_weights");
  sum_.download(host_sum_.data(), launches_.stream());
  int64_t share = 0;
  for (size_t i = 0; i < part.count; ++i) {
    if (!usable[i]) continue;
    share += std::llrint(part.round.cohort.share(part.first + i) * FixedPointSum::kUnit);
  }
  part.result.sum.add(host_sum_.data(), host_sum_.size(), share);
}

void Wave::add_each(const WavePart& part, int64_t slot, const std::vector<int>& usable,
                    const std::vector<Telemetry>& of_each) {
  for (size_t i = 0; i < part.count; ++i) {
    if (!usable[i]) continue;
    const int64_t at = slot + static_cast<int64_t>(i);
    ClientWeights& one = part.result.each.emplace_back();
    one.client = part.round.cohort.clients[part.first + i];
    one.share = part.round.cohort.share(part.first + i);
    one.loss = of_each[i].mean_loss();
    one.weights = take(weights_, at, part.round.global);
    if (part.round.task.continuous) one.velocity = take(velocity_, at, part.round.global);
  }
}

// Returns the vector of the client at `slot`, in the shapes of `like`.
Weights Wave::take(const DeviceArray<float>& vectors, int64_t slot, const Weights& like) {
  check_cuda(gather_values(vectors.data() + slot * device_.graph.size, device_.positions.data(),
                           global_.size(), global_.data(), launches_.stream()),
             "gather_values");
  global_.download(values_.data(), launches_.stream());
  const float* value = values_.data();
  Weights taken;
  for (const Array& shape : like) {
    Array& w = taken.emplace_back(shape.sizes());
    std::copy_n(value, w.count(), w.floats());
    value += w.count();
  }
  return taken;
}

}  // namespace fedsmooth
