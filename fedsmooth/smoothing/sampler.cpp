#include "fedsmooth/smoothing/sampler.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"

namespace fedsmooth {
namespace {

// The class with the largest logit, the lowest one on ties; -1 if any logit is not finite, because
// a broken evaluation must not count in favour of a class.
int64_t vote(const float* logits, int64_t classes) {
  int64_t best = 0;
  bool finite = true;
  for (int64_t c = 0; c < classes; ++c) {
    finite = finite && std::isfinite(logits[c]);
    if (logits[c] > logits[best]) best = c;
  }
  return finite ? best : -1;
}

}  // namespace

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

void CopyList::add_votes(const Classifier& f, int64_t begin, Array& noisy,
                         std::vector<Votes>& votes) const {
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
  const auto classes = static_cast<int64_t>(votes.front().size());
  check(logits.sizes() == Sizes{batch, classes},
        "add_votes: the classifier gave logits [{}], expected [{}, {}]",
        fmt::join(logits.sizes(), ", "), batch, classes);
  for (const auto& [request, sample, row, count] : here) {
    for (int64_t i = row; i < row + count; ++i) {
      const int64_t c = vote(logits.floats() + i * classes, classes);
      if (c >= 0) ++votes[request][c];
    }
  }
}

int64_t majority(const Votes& votes) {
  const auto top = std::max_element(votes.begin(), votes.end());
  return *top > 0 ? top - votes.begin() : -1;
}

std::vector<Votes> Sampler::count_all(const std::vector<VoteRequest>& requests) {
  std::vector<Votes> votes;
  for (const VoteRequest& request : requests) votes.push_back(count(request));
  return votes;
}

SerialSampler::SerialSampler(const BaseClassifier& f, const NoiseLaw& law, int threads)
    : Sampler(f, law), classifier_(f.make()), draws_(law, threads) {}

Votes SerialSampler::count(const VoteRequest& request) {
  const Array& x = request.x;
  if (!noisy_.defined()) noisy_ = Array({batch(), x.size(0), x.size(1), x.size(2)});
  const std::vector<VoteRequest> requests = {request};
  const CopyList copies(requests, draws_);
  std::vector<Votes> votes(1, Votes(classes(), 0));
  for (int64_t begin = 0; begin < copies.total(); begin += batch()) {
    copies.add_votes(classifier_, begin, noisy_, votes);
  }
  return votes[0];
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

FunctionCheck check_is_function(const Classifier& classifier, int64_t classes, int64_t batch,
                                const std::string& description, const Sizes& shape) {
  const Array inputs = probe_inputs(batch, shape);
  Array logits = classifier(inputs).clone();
  if (logits.sizes() != Sizes{batch, classes}) {
    throw Error("model: gives an output of shape [{}] for a batch of {} images, expected [{}, {}]",
                fmt::join(logits.sizes(), ", "), batch, batch, classes);
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
  return check_is_function(f.make(), f.classes, f.batch, f.description, shape);
}

Sampler::Sampler(const BaseClassifier& f, const NoiseLaw& law)
    : classes_(f.classes), batch_(f.batch), description_(f.description), law_(law) {}

const std::string& Sampler::check(const Sizes& shape) {
  if (!check_ || check_->inputs[0].sizes() != shape) {
    const auto f = [this](const Array& images) { return evaluate(images); };
    check_ = check_is_function(f, classes_, batch_, description_, shape);
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
