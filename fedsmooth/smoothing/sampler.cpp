#include "fedsmooth/smoothing/sampler.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"

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
               int64_t first, int64_t count, Tensor& noisy, Votes& votes) {
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
    const Tensor logits = f(noisy).contiguous();  // [batch, K]
    TORCH_CHECK(logits.dim() == 2 && logits.size(0) == batch && logits.size(1) == classes,
                "add_votes: the classifier gave logits ", logits.sizes(), ", expected [", batch,
                ", ", classes, "]");
    const float* row = logits.data_ptr<float>();
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
  c10::NoGradGuard no_grad;
  const Tensor& x = request.x;
  if (!noisy_.defined()) noisy_ = at::zeros({batch(), x.size(0), x.size(1), x.size(2)});
  Votes votes(classes(), 0);
  const bool valid = add_votes(classifier_, noise_, request, 0, request.n, noisy_, votes);
  return valid ? votes : Votes(classes(), 0);
}

Tensor SerialSampler::evaluate(const Tensor& images) { return classifier_(images); }

namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.eq(b).logical_or(a.isnan().logical_and(b.isnan())).all().item<bool>();
}

void check_neighbours(const Classifier& classifier, const Tensor& inputs, const Tensor& logits) {
  const int64_t batch = inputs.size(0), kept = (batch + 1) / 2;
  Tensor others = inputs.clone();
  others.narrow(0, kept, batch - kept).mul_(-3.0);
  if (!same(logits.narrow(0, 0, kept), classifier(others).narrow(0, 0, kept))) {
    throw Error(
        "model: an image's logits depend on the other images in the batch; a certificate needs a "
        "network in evaluation mode");
  }
}

void check_positions(const Classifier& classifier, const Tensor& inputs, const Tensor& logits,
                     const std::string& description) {
  // An odd shift moves every row to another position; the second half gets other neighbours too.
  for (const int64_t shift : {int64_t{1}, inputs.size(0) / 2 + 1}) {
    if (!same(logits.roll(shift, 0), classifier(inputs.roll(shift, 0)))) {
      throw DependsOnPosition(
          "model: an image's logits depend on its position in the batch ({}); it cannot be "
          "certified with this build",
          description);
    }
  }
}

FunctionCheck check_is_function(const Classifier& classifier, int64_t classes, int64_t batch,
                                const std::string& description, at::IntArrayRef shape) {
  c10::NoGradGuard no_grad;
  Tensor inputs = at::zeros({batch, shape[0], shape[1], shape[2]});
  const Tensor grey = at::full(shape, 0.5);
  add_noise(grey, 0.5, {make_key(0, Purpose::kProbe)}, 0, batch, inputs);
  Tensor logits = classifier(inputs).clone().contiguous();
  if (logits.dim() != 2 || logits.size(0) != batch || logits.size(1) != classes) {
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
      sha256({static_cast<const char*>(logits.data_ptr()), logits.numel() * sizeof(float)});
  return {std::move(inputs), std::move(logits), std::move(fingerprint)};
}

}  // namespace

FunctionCheck check_is_function(const BaseClassifier& f, at::IntArrayRef shape) {
  return check_is_function(f.make(), f.classes, f.batch, f.description, shape);
}

Sampler::Sampler(const BaseClassifier& f)
    : classes_(f.classes),
      batch_(f.batch),
      description_(f.description),
      noise_kind_(f.noise_kind) {}

const std::string& Sampler::check(at::IntArrayRef shape) {
  if (!check_ || check_->inputs.sizes().slice(1) != shape) {
    const auto f = [this](const Tensor& images) { return evaluate(images); };
    check_ = check_is_function(f, classes_, batch_, description_, shape);
  }
  return check_->fingerprint;
}

void Sampler::probe() {
  TORCH_CHECK(check_, "Sampler::probe: check() comes first");
  c10::NoGradGuard no_grad;
  if (!same(check_->logits, evaluate_again(*check_))) {
    throw ClassifierChanged("the model's answers changed while it was certified");
  }
}

}  // namespace fedsmooth
