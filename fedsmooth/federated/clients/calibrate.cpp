#include "fedsmooth/federated/clients/calibrate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace {

class CalibratedPasses : public Passes {
 public:
  CalibratedPasses(Passes& passes, std::vector<float> offsets)
      : passes_(passes), offsets_(std::move(offsets)) {}

  void load(const Weights& weights) override { passes_.load(weights); }
  Weights weights() const override { return passes_.weights(); }
  std::vector<std::span<float>> trained_values() override { return passes_.trained_values(); }

  Array forward(const Array& images, const std::optional<Stream>& training) override {
    Array logits = passes_.forward(images, training);
    const auto classes = std::ssize(offsets_);
    for (int64_t i = 0; i < logits.count(); ++i) logits.floats()[i] += offsets_[i % classes];
    return logits;
  }

  // A constant changes no gradient.
  Array backward_to_images(const Array& gradient) override {
    return passes_.backward_to_images(gradient);
  }
  std::vector<WeightGradient> backward_to_weights(const Array& gradient) override {
    return passes_.backward_to_weights(gradient);
  }

 private:
  Passes& passes_;
  std::vector<float> offsets_;
};

}  // namespace

std::vector<float> log_class_shares(const Dataset& data, const std::vector<int64_t>& images) {
  check(data.classes() > 0, "log_class_shares: data without class names");
  std::vector<double> counts(data.classes(), 0);
  for (const int64_t i : images) ++counts[data.label(i)];
  std::vector<float> shares;
  for (const double count : counts) {
    const double share = std::max(count, 1e-7) / static_cast<double>(images.size());
    shares.push_back(static_cast<float>(std::log(share)));
  }
  return shares;
}

std::unique_ptr<Passes> calibrated(Passes& passes, std::vector<float> offsets) {
  return std::make_unique<CalibratedPasses>(passes, std::move(offsets));
}

}  // namespace fedsmooth
