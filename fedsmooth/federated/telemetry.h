// Measurements of a client's training and of its attacks.
#pragma once

#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "fedsmooth/federated/objectives/objective.h"
#include "fedsmooth/federated/order_free_sum.h"
#include "fedsmooth/federated/passes.h"

namespace fedsmooth {

/// The measurements of a round. They are 64-bit integers only, so those of clients, ranks and nodes
/// are added up word by word, in any order.
struct Telemetry {
  static constexpr int64_t kBins = 200;  // bins of |x_adv - x| / epsilon in [0, 1]

  OrderFreeSum loss;             // sum over SGD steps
  OrderFreeSum robust, entropy;  // sums of these terms of the loss
  int64_t steps = 0;
  OrderFreeSum perturbation;  // sum over attacked images of |x_adv - x| / epsilon
  OrderFreeSum drop;          // sum over them of the fall of the true class's mean probability
  int64_t attacked = 0;       // number of these images
  OrderFreeSum cosine;        // sum over images of cos(one-point gradient, true gradient)
  int64_t compared = 0;       // number of these images
  std::array<int64_t, kBins + 1> histogram = {};

  /// Calls `visit` with each integer, the same order every time. This is the only list of fields:
  /// one of another type does not compile, and one that is missing fails the assertion below.
  template <typename Self, typename Visit>
  static constexpr void visit_words(Self& t, const Visit& visit) {
    for (auto* sum : {&t.loss, &t.robust, &t.entropy, &t.perturbation, &t.drop, &t.cosine}) {
      OrderFreeSum::visit_words(*sum, visit);
    }
    visit(t.steps), visit(t.attacked), visit(t.compared);
    for (auto& bin : t.histogram) visit(bin);
  }
  std::vector<int64_t> to_words() const;
  /// Adds kTelemetryWords words modulo 2^64. Words of a node may have any value.
  template <typename Word>
  void add_words(const Word* words) {
    static_assert(std::is_integral_v<Word> && sizeof(Word) == sizeof(int64_t));
    visit_words(*this, [&](int64_t& word) {
      word = static_cast<int64_t>(static_cast<uint64_t>(word) + static_cast<uint64_t>(*words++));
    });
  }
  void add(const Telemetry& other) { add_words(other.to_words().data()); }
  /// Adds the sums of the loss's terms over `count` SGD steps.
  void add_steps(const Terms& sums, int64_t count);
  /// Adds one image: |x_adv - x| / epsilon, and the true class's mean probability before and after
  /// the attack.
  void add_attack(double ratio, double before, double after);
  double mean_loss() const;  // NaN if there was no step
  double mean_robust() const;
  double mean_entropy() const;
  double mean_perturbation() const;
  double p95_perturbation() const;
  double mean_drop() const;
  std::optional<double> mean_cosine() const;  // nothing if it was not measured
};

inline constexpr size_t kTelemetryWords = [] {
  Telemetry any;
  size_t count = 0;
  Telemetry::visit_words(any, [&](int64_t&) { ++count; });
  return count;
}();
static_assert(sizeof(Telemetry) == kTelemetryWords * sizeof(int64_t), "a field is not visited");

/// Records how far the attack moved the images of a minibatch, and by how much that lowered the
/// true class's smoothed probability. Costs two forward passes.
void record_attack(const Classifier& f, const Batch& b, const Array& x_adv, const Array& delta,
                   double epsilon, Telemetry& telemetry);

/// Compares the one-point estimate with the gradient on the client's first minibatch, if the task
/// asks for it.
void compare_gradients(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                       const std::vector<int64_t>& images, int64_t t, Telemetry& telemetry);

}  // namespace fedsmooth
