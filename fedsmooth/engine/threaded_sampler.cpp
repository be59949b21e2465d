#include "fedsmooth/engine/threaded_sampler.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <mutex>

namespace fedsmooth {

ThreadedSampler::ThreadedSampler(const BaseClassifier& f, int threads,
                                 std::function<bool()> cancelled)
    : noisy_(threads),
      noise_(f.noise),
      classes_(f.classes),
      batch_(f.batch),
      cancelled_(std::move(cancelled)),
      workers_(threads) {
  for (int i = 0; i < threads; ++i) classifiers_.push_back(f.make());
}

Votes ThreadedSampler::count(const VoteRequest& request) {
  const Tensor& x = request.x;
  const int64_t n = request.n;
  Votes total(classes_, 0);
  std::mutex mutex;
  std::atomic<int64_t> next = 0;
  std::atomic<bool> valid = true;
  workers_.run([&](int worker) {
    c10::NoGradGuard no_grad;
    Tensor& noisy = noisy_[worker];
    if (!noisy.defined()) noisy = at::zeros({batch_, x.size(0), x.size(1), x.size(2)});
    Votes votes(classes_, 0);
    // Batches start at multiples of the batch size, whoever takes them.
    for (int64_t first; (first = next.fetch_add(batch_)) < n;) {
      if (cancelled_ && cancelled_()) throw Cancelled{};
      const int64_t count = std::min(batch_, n - first);
      if (!add_votes(classifiers_[worker], noise_, request, first, count, noisy, votes)) {
        valid = false;
      }
    }
    const std::lock_guard lock(mutex);
    for (int64_t c = 0; c < classes_; ++c) total[c] += votes[c];
  });
  return valid ? total : Votes(classes_, 0);
}

}  // namespace fedsmooth
