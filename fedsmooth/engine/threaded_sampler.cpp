#include "fedsmooth/engine/threaded_sampler.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace fedsmooth {

ThreadedSampler::ThreadedSampler(const BaseClassifier& f, const NoiseLaw& law, int threads,
                                 Stop stopped)
    : Sampler(f, law),
      noisy_(threads),
      draws_(law),
      stopped_(std::move(stopped)),
      workers_(threads) {
  for (int i = 0; i < threads; ++i) classifiers_.push_back(f.make());
}

std::vector<Votes> ThreadedSampler::count_all(const std::vector<VoteRequest>& requests) {
  std::vector<Votes> votes;
  for (VotesAndGaps& tally : count_into(begin_tallies(requests.size(), {}), requests)) {
    votes.push_back(std::move(tally.votes));
  }
  return votes;
}

std::vector<VotesAndGaps> ThreadedSampler::count_gaps(const std::vector<VoteRequest>& requests,
                                                      const std::vector<int64_t>& classes) {
  return count_into(begin_tallies(requests.size(), classes), requests);
}

std::vector<VotesAndGaps> ThreadedSampler::count_into(std::vector<VotesAndGaps> empty,
                                                      const std::vector<VoteRequest>& requests) {
  const int64_t batch = this->batch();
  const CopyList copies(requests, draws_);
  std::vector<VotesAndGaps> total = empty;
  std::mutex mutex;
  std::atomic<int64_t> next = 0;
  workers_.run([&](int worker) {
    std::vector<VotesAndGaps> own = empty;
    // Batches start at multiples of the batch size, whoever takes them.
    for (int64_t first; (first = next.fetch_add(batch)) < copies.total();) {
      if (stopped_ && stopped_()) throw Interrupted{};
      Array& noisy = noisy_[worker];
      const Array& x = requests.front().x;
      const Sizes shape = {batch, x.size(0), x.size(1), x.size(2)};
      if (!noisy.defined() || noisy.sizes() != shape) noisy = Array(shape);
      copies.add_votes(classifiers_[worker], groups(), first, noisy, own);
    }
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < total.size(); ++i) total[i].add(own[i]);
  });
  return total;
}

Array ThreadedSampler::evaluate(const Array& images) {
  return classifiers_[next_++ % classifiers_.size()](images);
}

}  // namespace fedsmooth
