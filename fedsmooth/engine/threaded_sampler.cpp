#include "fedsmooth/engine/threaded_sampler.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace fedsmooth {

ThreadedSampler::ThreadedSampler(const BaseClassifier& f, int threads,
                                 Stop stopped)
    : Sampler(f),
      noisy_(threads),
      noise_(f.noise),
      stopped_(std::move(stopped)),
      workers_(threads) {
  for (int i = 0; i < threads; ++i) classifiers_.push_back(f.make());
}

Votes ThreadedSampler::count(const VoteRequest& request) {
  const Array& x = request.x;
  const int64_t n = request.n, batch = this->batch();
  Votes total(classes(), 0);
  std::mutex mutex;
  std::atomic<int64_t> next = 0;
  std::atomic<bool> valid = true;
  workers_.run([&](int worker) {
    Array& noisy = noisy_[worker];
    if (!noisy.defined()) noisy = Array({batch, x.size(0), x.size(1), x.size(2)});
    Votes votes(classes(), 0);
    // Batches start at multiples of the batch size, whoever takes them.
    for (int64_t first; (first = next.fetch_add(batch)) < n;) {
      if (stopped_ && stopped_()) throw Interrupted{};
      const int64_t count = std::min(batch, n - first);
      if (!add_votes(classifiers_[worker], noise_, request, first, count, noisy, votes)) {
        valid = false;
      }
    }
    const std::lock_guard lock(mutex);
    for (int64_t c = 0; c < classes(); ++c) total[c] += votes[c];
  });
  return valid ? total : Votes(classes(), 0);
}

Array ThreadedSampler::evaluate(const Array& images) {
  return classifiers_[next_++ % classifiers_.size()](images);
}

}  // namespace fedsmooth
