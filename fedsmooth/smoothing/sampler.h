// Votes of the base classifier under noise, and the seam behind which they are counted: serially,
// in threads, on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fedsmooth/base/classifier.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/noise.h"

namespace fedsmooth {

/// How often each class won. A copy whose logits are not all finite votes for nobody.
using Votes = std::vector<int64_t>;

/// The class with the most votes, the lowest one on ties; -1 if nobody voted.
int64_t majority(const Votes& votes);

class Sampler;

/// The base classifier f: a network at one fixed batch shape. Libraries round differently at
/// different batch sizes, so f is a function only if every call has the same shape; short batches
/// are padded.
struct BaseClassifier {
  /// Makes a classifier for one thread (it may own scratch memory).
  std::function<Classifier()> make;
  int64_t classes = 0;
  int64_t batch = 0;
  /// Device, precision, batch, vector instructions and library: certificates that differ in it are
  /// about different classifiers.
  std::string description;
  /// Makes a sampler of the classifier's own, if it has one. `cancelled` is asked before each
  /// batch.
  std::function<std::unique_ptr<Sampler>(std::function<bool()> cancelled)> sampler;
  /// How its noisy copies are drawn if it has no such sampler; by add_noise() if empty.
  NoiseSource noise;
};

/// Thrown by a sampler that was told to stop.
struct Cancelled {};

/// Votes of samples 0 .. n-1 of `stream`: f(x + sigma e), x [C, H, W].
struct VoteRequest {
  Tensor x;
  double sigma = 0;
  int64_t n = 0;
  Stream stream;
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  virtual Votes count(const VoteRequest& request) = 0;
  /// The same for each of several.
  virtual std::vector<Votes> count_all(const std::vector<VoteRequest>& requests);
  /// How many requests for n votes it does best at once.
  virtual int64_t requests_at_once(int64_t /*n*/) const { return 1; }
};

/// One batch after another in the calling thread: the oracle for every faster sampler.
class SerialSampler : public Sampler {
 public:
  explicit SerialSampler(const BaseClassifier& f);
  Votes count(const VoteRequest& request) override;

 private:
  Classifier classifier_;
  NoiseSource noise_;
  int64_t classes_;
  int64_t batch_;
  Tensor noisy_;
};

/// Adds the votes of samples [first, first + count) of the request to `votes`; `noisy` is scratch,
/// [batch, C, H, W]. False: no vote of the request may count, see NoiseSource. All samplers on the
/// CPU are loops over this.
bool add_votes(const Classifier& f, const NoiseSource& noise, const VoteRequest& request,
               int64_t first, int64_t count, Tensor& noisy, Votes& votes);

/// The Error of check_is_function() that another batch may cure.
struct DependsOnPosition : Error {
  using Error::Error;
};

/// Throws an Error unless f gives the same bits for the same input again, at another position and
/// among other neighbours. `shape` is [C, H, W]. No certificate is issued without it. Returns a
/// fingerprint, the SHA-256 of f's logits for fixed inputs: two classifiers that differ in weights,
/// normalisation or arithmetic differ in it.
std::string check_is_function(const BaseClassifier& f, at::IntArrayRef shape);

}  // namespace fedsmooth
