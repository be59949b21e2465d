#include "fedsmooth/smoothing/sampler.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"

namespace fedsmooth {

LawDraws::LawDraws(const NoiseLaw& law, int threads) : law_(law) {
  if (law.draws_at == nullptr) {
    throw Error("noise={}: only older tables have it, and it cannot be drawn", law.name);
  }
  if (threads > 1) workers_ = std::make_shared<Workers>(threads);
}

NoiseSource LawDraws::at(double sigma) {
  constexpr int64_t kWorthThreads = 1 << 16;  // values
  if (source_ && sigma == sigma_) return source_;
  source_ = law_.draws_at(sigma);
  sigma_ = sigma;
  if (!workers_) return source_;
  source_ = [draw = source_, workers = workers_](const Array& x, Stream stream, int64_t first,
                                                 int64_t count, Array& noisy) {
    if (count * x.count() < kWorthThreads) return draw(x, stream, first, count, noisy);
    workers->run([&](int worker) {
      const int64_t begin = count * worker / workers->count();
      const int64_t end = count * (worker + 1) / workers->count();
      Array rows = noisy.part(begin, end - begin);
      draw(x, stream, first + begin, end - begin, rows);
    });
  };
  return source_;
}

CopyList::CopyList(const std::vector<VoteRequest>& requests, LawDraws& draws)
    : requests_(requests), first_(1, 0) {
  for (const VoteRequest& r : requests) {
    noise_.push_back(draws.at(r.sigma));
    first_.push_back(first_.back() + r.n);
  }
}

std::vector<CopyList::Piece> CopyList::pieces(int64_t begin, int64_t batch) const {
  const int64_t end = std::min(begin + batch, total());
  std::vector<Piece> found;
  auto next = std::upper_bound(first_.begin(), first_.end(), begin);
  for (int64_t at = begin; at < end; ++next) {
    const size_t i = next - first_.begin() - 1;
    const int64_t stop = std::min(end, *next);
    if (stop > at) found.push_back({i, requests_[i].first + at - first_[i], at - begin, stop - at});
    at = stop;
  }
  return found;
}

void CopyList::add_votes(const Classifier& f, int64_t groups, int64_t begin, Array& noisy,
                         std::vector<VotesAndGaps>& tallies) const {
  const int64_t batch = noisy.size(0);
  const std::vector<Piece> here = pieces(begin, batch);
  for (const auto& [request, sample, row, count] : here) {
    const VoteRequest& r = requests_[request];
    Array rows = noisy.part(row, count);
    noise_[request](r.x, r.stream, sample, count, rows);
  }
  // A short batch keeps its shape; rows beyond the last piece hold older copies and are not
  // counted.
  const Array logits = f(noisy);
  const int64_t width = std::ssize(tallies.front().votes) * std::max<int64_t>(1, groups);
  check(logits.sizes() == Sizes{batch, width},
        "add_votes: the classifier gave logits [{}], expected [{}, {}]",
        fmt::join(logits.sizes(), ", "), batch, width);
  for (const auto& [request, sample, row, count] : here) {
    for (int64_t i = row; i < row + count; ++i) {
      tallies[request].add_copy(logits.floats() + i * width, groups);
    }
  }
}

std::vector<Votes> Sampler::count_all(const std::vector<VoteRequest>& requests) {
  std::vector<Votes> votes;
  for (const VoteRequest& request : requests) votes.push_back(count(request));
  return votes;
}

std::vector<VotesAndGaps> Sampler::count_gaps(const std::vector<VoteRequest>& /*requests*/,
                                              const std::vector<int64_t>& /*classes*/) {
  throw Error("{}: does not count the votes of several groups", description_);
}

std::vector<VotesAndGaps> Sampler::begin_tallies(size_t requests,
                                                 const std::vector<int64_t>& gaps_of) const {
  std::vector<VotesAndGaps> tallies(requests, VotesAndGaps{Votes(classes_, 0)});
  if (gaps_of.empty()) return tallies;
  if (groups_ == 0) throw Error("{}: is one network, not several groups", description_);
  fedsmooth::check(gaps_of.size() == requests, "count_gaps: {} requests, {} classes", requests,
                   gaps_of.size());
  for (size_t i = 0; i < requests; ++i) {
    fedsmooth::check(gaps_of[i] >= 0 && gaps_of[i] < classes_, "count_gaps: class {} of {}",
                     gaps_of[i], classes_);
    tallies[i].gaps_of = gaps_of[i];
    tallies[i].gaps.assign(groups_ + 2, 0);
  }
  return tallies;
}

SerialSampler::SerialSampler(const BaseClassifier& f, const NoiseLaw& law, int threads)
    : Sampler(f, law), classifier_(f.make()), draws_(law, threads) {}

Votes SerialSampler::count(const VoteRequest& request) {
  VotesAndGaps tally = begin_tallies(1, {})[0];
  count_into(tally, request);
  return tally.votes;
}

std::vector<VotesAndGaps> SerialSampler::count_gaps(const std::vector<VoteRequest>& requests,
                                                    const std::vector<int64_t>& classes) {
  std::vector<VotesAndGaps> tallies = begin_tallies(requests.size(), classes);
  for (size_t i = 0; i < requests.size(); ++i) count_into(tallies[i], requests[i]);
  return tallies;
}

void SerialSampler::count_into(VotesAndGaps& tally, const VoteRequest& request) {
  const Array& x = request.x;
  const Sizes shape = {batch(), x.size(0), x.size(1), x.size(2)};
  if (!noisy_.defined() || noisy_.sizes() != shape) noisy_ = Array(shape);
  const std::vector<VoteRequest> requests = {request};
  const CopyList copies(requests, draws_);
  std::vector<VotesAndGaps> tallies = {std::move(tally)};
  for (int64_t begin = 0; begin < copies.total(); begin += batch()) {
    copies.add_votes(classifier_, groups(), begin, noisy_, tallies);
  }
  tally = std::move(tallies[0]);
}

Array SerialSampler::evaluate(const Array& images) { return classifier_(images); }

namespace {

// The same bits, but that any NaN is like any other.
bool same(const Array& a, const Array& b) {
  if (a.sizes() != b.sizes()) return false;
  const float *x = a.floats(), *y = b.floats();
  for (int64_t i = 0; i < a.count(); ++i) {
    if (!(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])))) return false;
  }
  return true;
}

// Entry i moves to i + shift, those at the end to the beginning.
Array rolled(const Array& rows, int64_t shift) {
  const int64_t count = rows.size(0);
  std::vector<int64_t> from(count);
  for (int64_t i = 0; i < count; ++i) from[(i + shift) % count] = i;
  return rows.pick(from);
}

void check_neighbours(const Classifier& classifier, const Array& inputs, const Array& logits) {
  const int64_t batch = inputs.size(0), kept = (batch + 1) / 2;
  Array others = inputs.clone();
  Array changed = others.part(kept, batch - kept);
  for (int64_t i = 0; i < changed.count(); ++i) changed.floats()[i] *= -3.0f;
  if (!same(logits.part(0, kept), classifier(others).part(0, kept))) {
    throw Error(
        "model: an image's logits depend on the other images in the batch; a certificate needs a "
        "network in evaluation mode");
  }
}

void check_positions(const Classifier& classifier, const Array& inputs, const Array& logits,
                     const std::string& description) {
  // An odd shift moves every row to another position; the second half gets other neighbours too.
  for (const int64_t shift : {int64_t{1}, inputs.size(0) / 2 + 1}) {
    if (!same(rolled(logits, shift), classifier(rolled(inputs, shift)))) {
      throw DependsOnPosition(
          "model: an image's logits depend on its position in the batch ({}); it cannot be "
          "certified with this build",
          description);
    }
  }
}

// Noise around a grey image, the same in every version: fingerprints are of f's logits for it.
Array probe_inputs(int64_t batch, const Sizes& shape) {
  Array inputs({batch, shape.at(0), shape.at(1), shape.at(2)});
  const int64_t size = count_of(shape);
  for (int64_t i = 0; i < batch; ++i) {
    float* out = inputs.floats() + i * size;
    fill_normal({make_key(0, Purpose::kProbe)}, static_cast<uint32_t>(i), out, size);
    for (int64_t j = 0; j < size; ++j) out[j] = 0.5f + 0.5f * out[j];
  }
  return inputs;
}

// Logits of an image: of all networks, which must each be a function.
int64_t logits_of(const BaseClassifier& f) { return f.classes * std::max<int64_t>(1, f.groups); }

FunctionCheck check_is_function(const Classifier& classifier, int64_t width, int64_t batch,
                                const std::string& description, const Sizes& shape) {
  const Array inputs = probe_inputs(batch, shape);
  Array logits = classifier(inputs).clone();
  if (logits.sizes() != Sizes{batch, width}) {
    throw Error("model: gives an output of shape [{}] for a batch of {} images, expected [{}, {}]",
                fmt::join(logits.sizes(), ", "), batch, batch, width);
  }
  if (!same(logits, classifier(inputs))) {
    throw Error(
        "model: gives different logits for the same images when asked again; a certificate needs a "
        "deterministic network in evaluation mode");
  }
  // Neighbours first: batch statistics also change with the order, by rounding, but what the user
  // can cure is that they are there.
  check_neighbours(classifier, inputs, logits);
  check_positions(classifier, inputs, logits, description);
  std::string fingerprint =
      sha256({static_cast<const char*>(logits.data()), static_cast<size_t>(logits.byte_count())});
  return {inputs, std::move(logits), std::move(fingerprint)};
}

}  // namespace

FunctionCheck check_is_function(const BaseClassifier& f, const Sizes& shape) {
  return check_is_function(f.make(), logits_of(f), f.batch, f.description, shape);
}

Sampler::Sampler(const BaseClassifier& f, const NoiseLaw& law)
    : classes_(f.classes),
      batch_(f.batch),
      groups_(f.groups),
      logits_(logits_of(f)),
      description_(f.description),
      law_(law) {}

const std::string& Sampler::check(const Sizes& shape) {
  if (!check_ || check_->inputs[0].sizes() != shape) {
    const auto f = [this](const Array& images) { return evaluate(images); };
    check_ = check_is_function(f, logits_, batch_, description_, shape);
  }
  return check_->fingerprint;
}

void Sampler::probe() {
  fedsmooth::check(check_.has_value(), "Sampler::probe: check() comes first");
  if (!same(check_->logits, evaluate_again(*check_))) {
    throw ClassifierChanged("the model's answers changed while it was certified");
  }
}

}  // namespace fedsmooth
