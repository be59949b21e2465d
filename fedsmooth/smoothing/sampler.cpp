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

bool add_votes(const Classifier& f, const NoiseSource& noise, const VoteRequest& request,
               int64_t first, int64_t count, Array& noisy, Votes& votes) {
  const auto& [x, sigma, n, stream] = request;
  const int64_t batch = noisy.size(0);
  const auto classes = static_cast<int64_t>(votes.size());
  for (int64_t done = 0; done < count; done += batch) {
    const int64_t used = std::min(batch, count - done);
    if (!noise) {
      add_noise(x, sigma, stream, first + done, used, noisy);
    } else if (!noise(x, sigma, stream, first + done, used, noisy)) {
      return false;
    }
    // A short batch keeps its shape; rows beyond `used` hold older copies and are not counted.
    const Array logits = f(noisy);
    check(logits.sizes() == Sizes{batch, classes},
          "add_votes: the classifier gave logits [{}], expected [{}, {}]",
          fmt::join(logits.sizes(), ", "), batch, classes);
    const float* row = logits.floats();
    for (int64_t i = 0; i < used; ++i, row += classes) {
      const int64_t c = vote(row, classes);
      if (c >= 0) ++votes[c];
    }
  }
  return true;
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

SerialSampler::SerialSampler(const BaseClassifier& f)
    : Sampler(f), classifier_(f.make()), noise_(f.noise) {}

Votes SerialSampler::count(const VoteRequest& request) {
  const Array& x = request.x;
  if (!noisy_.defined()) noisy_ = Array({batch(), x.size(0), x.size(1), x.size(2)});
  Votes votes(classes(), 0);
  const bool valid = add_votes(classifier_, noise_, request, 0, request.n, noisy_, votes);
  return valid ? votes : Votes(classes(), 0);
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

FunctionCheck check_is_function(const Classifier& classifier, int64_t classes, int64_t batch,
                                const std::string& description, const Sizes& shape) {
  Array inputs({batch, shape.at(0), shape.at(1), shape.at(2)});
  add_noise(Array::full(shape, 0.5), 0.5, {make_key(0, Purpose::kProbe)}, 0, batch, inputs);
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
  return {std::move(inputs), std::move(logits), std::move(fingerprint)};
}

}  // namespace

FunctionCheck check_is_function(const BaseClassifier& f, const Sizes& shape) {
  return check_is_function(f.make(), f.classes, f.batch, f.description, shape);
}

Sampler::Sampler(const BaseClassifier& f)
    : classes_(f.classes),
      batch_(f.batch),
      description_(f.description),
      noise_kind_(f.noise_kind) {}

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
