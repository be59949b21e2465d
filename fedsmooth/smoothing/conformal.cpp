#include "fedsmooth/smoothing/conformal.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

// One thread's share of the images: batch number `worker`, then every `workers`th.
struct Pass {
  const BaseClassifier& f;
  const NoiseSource& noise;
  Key key;
  int64_t count;
  const std::function<LabelledImage(int64_t i)>& image;
  const std::function<void(int64_t i, std::vector<double> scores)>& take;
  const Stop& stopped;

  void run(int worker, int workers) const {
    const Classifier logits_of = f.make();
    Array noisy;
    for (int64_t begin = worker * f.batch; begin < count; begin += workers * f.batch) {
      if (stopped && stopped()) throw Interrupted{};
      const int64_t end = std::min(begin + f.batch, count);
      for (int64_t i = begin; i < end; ++i) {
        const LabelledImage one = image(i);
        const Array& x = one.x;
        if (!noisy.defined()) {
          noisy = Array::full({f.batch, x.size(0), x.size(1), x.size(2)}, 0.5f);
        }
        Array row = noisy.part(i - begin, 1);
        noise(x, {key, one.index}, 0, 1, row);
      }
      const Array logits = logits_of(noisy);
      for (int64_t i = begin; i < end; ++i) {
        take(i, conformal_scores(logits.floats() + (i - begin) * f.classes, f.classes));
      }
    }
  }
};

}  // namespace

double conformal_level(double coverage, double epsilon, double sigma, const NoiseLaw& law) {
  if (law.shifted_level == nullptr) {
    throw Error("noise={}: conformal sets are not known for this law; choose another noise",
                law.name);
  }
  if (!(coverage >= 0.5 && coverage < 1)) {
    throw Error("coverage={}: must be at least 0.5 and below 1", coverage);
  }
  if (!(epsilon >= 0 && std::isfinite(epsilon))) {
    throw Error("epsilon={}: must not be negative", epsilon);
  }
  if (!(sigma > 0 && sigma <= law.max_sigma)) {
    throw Error("sigma={}: must be positive and at most {} with {} noise", sigma, law.max_sigma,
                law.name);
  }
  const double level = law.shifted_level(sigma, coverage, epsilon);
  if (!(level < 1)) {
    throw Error("epsilon={}: is too large beside sigma={} for any number of calibration images",
                epsilon, sigma);
  }
  return level;
}

int64_t conformal_rank(int64_t n, double level) {
  const long double rank = static_cast<long double>(n + 1) * level;
  return static_cast<int64_t>(std::ceil(std::nextafter(rank, HUGE_VALL)));
}

int64_t needed_images(double level) {
  auto n = static_cast<int64_t>(std::max(0.0, std::floor(level / (1 - level)) - 2));
  while (conformal_rank(n, level) > n) ++n;
  return n;
}

double conformal_quantile(std::vector<double> scores, double level) {
  const int64_t n = std::ssize(scores), rank = conformal_rank(n, level);
  if (rank > n) {
    throw Error("conformal: {} calibration images are too few; at least {} are needed", n,
                needed_images(level));
  }
  const auto at = scores.begin() + (rank - 1);
  std::nth_element(scores.begin(), at, scores.end());
  return *at;
}

std::vector<double> conformal_scores(const float* logits, int64_t classes) {
  std::vector<double> scores(classes, INFINITY);
  if (!std::all_of(logits, logits + classes, [](float v) { return std::isfinite(v); })) {
    return scores;
  }
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
  for (int64_t c = 0; c < classes; ++c) scores[c] = std::log(sum) + (largest - logits[c]);
  return scores;
}

Key conformal_key(uint64_t seed, ConformalDraw draw) {
  return make_key(seed, Purpose::kConformal, static_cast<uint64_t>(draw));
}

std::string one_pass_scores(const BaseClassifier& f, const NoiseLaw& law, double sigma, Key key,
                            int64_t count, const std::function<LabelledImage(int64_t i)>& image,
                            const std::function<void(int64_t i, std::vector<double> scores)>& take,
                            int threads, const Stop& stopped) {
  if (count == 0) return {};
  const Sizes shape = image(0).x.sizes();
  std::string fingerprint = check_is_function(f, shape).fingerprint;
  const NoiseSource noise = LawDraws(law).at(sigma);
  const Pass pass = {f, noise, key, count, image, take, stopped};
  const auto batches = (count + f.batch - 1) / f.batch;
  // A classifier with a sampler of its own is on a device that does a batch at a time.
  Workers workers(f.sampler ? 1 : static_cast<int>(std::min<int64_t>(threads, batches)));
  workers.run([&](int worker) { pass.run(worker, workers.count()); });
  if (check_is_function(f, shape).fingerprint != fingerprint) {
    throw ClassifierChanged("the model's answers changed while it was calibrated");
  }
  return fingerprint;
}

}  // namespace fedsmooth
