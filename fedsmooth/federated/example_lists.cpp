#include "fedsmooth/federated/example_lists.h"

#include <algorithm>
#include <utility>

namespace fedsmooth {
namespace {

// The rows of an image in `first`, then those in `second`, and so on for every image.
Array interleave(const Array& first, const Array& second, int64_t images) {
  const int64_t a = first.count() / images, b = second.count() / images;
  Array rows({first.size(0) + second.size(0), first.size(1), first.size(2), first.size(3)});
  float* out = rows.floats();
  for (int64_t j = 0; j < images; ++j) {
    out = std::copy_n(first.floats() + j * a, a, out);
    out = std::copy_n(second.floats() + j * b, b, out);
  }
  return rows;
}

}  // namespace

Examples list_clean_and_noisy(LocalStep& /*step*/, const Batch& b, const Array& delta) {
  return {interleave(b.x, noisy_copies(b.x, delta), b.x.size(0)), b.y, 1 + delta.size(1)};
}

Examples list_mixed(LocalStep& step, const Batch& b, const Array& delta) {
  const LocalTask& task = step.task;
  const double sigma = task.smoothing.sigma;
  const DifferentiableClassifier F = answers_of(step.passes);
  AttackOptions ascent = mix_ascent(task);
  const int64_t steps = std::exchange(ascent.steps, 1);
  Array x_adv = attack_smoothed(F, b.x, b.y, delta, sigma, ascent);
  const double moved = mix_first_step(task);
  const Array x = moved > 0 ? project_l2(x_adv, b.x, moved) : b.x;
  ascent.steps = steps - 1;
  x_adv = attack_smoothed(F, x_adv, b.y, delta, sigma, ascent);

  Examples list{{}, b.y, 2 * delta.size(1)};
  Array x_mixed(x.sizes());
  const int64_t size = x.count() / x.size(0);
  for (int64_t j = 0; j < x.size(0); ++j) {
    float uniform = 0;
    fill_uniform(step.streams.of(Purpose::kObjective, step.i), static_cast<uint32_t>(j), &uniform, 1);
    const float mix = uniform / 2;
    list.mix.push_back(mix);
    for (int64_t i = j * size; i < (j + 1) * size; ++i) {
      x_mixed.floats()[i] = (1 - mix) * x.floats()[i] + mix * x_adv.floats()[i];
    }
  }
  list.rows = interleave(noisy_copies(x, delta), noisy_copies(x_mixed, delta), x.size(0));
  return list;
}

}  // namespace fedsmooth
