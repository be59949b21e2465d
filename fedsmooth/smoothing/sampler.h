// Votes of the base classifier under noise, and the seam behind which they are counted: serially,
// in threads, on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fedsmooth/base/classifier.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// How often each class won. A copy whose logits are not all finite votes for nobody.
using Votes = std::vector<int64_t>;

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
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  /// Votes of samples 0 .. n-1 of `stream`: f(x + sigma e), x [C, H, W]. The sum is formed in fp32.
  virtual Votes count(const Tensor& x, double sigma, int64_t n, Stream stream) = 0;
};

/// One batch after another in the calling thread: the oracle for every faster sampler.
class SerialSampler : public Sampler {
 public:
  explicit SerialSampler(const BaseClassifier& f);
  Votes count(const Tensor& x, double sigma, int64_t n, Stream stream) override;

 private:
  Classifier classifier_;
  int64_t classes_;
  int64_t batch_;
  Tensor noisy_;
};

/// Adds the votes of samples [first, first + count) to `votes`; `noisy` is scratch, [batch, C, H,
/// W]. All samplers on the CPU are loops over this.
void add_votes(const Classifier& f, const Tensor& x, double sigma, Stream stream, int64_t first,
               int64_t count, Tensor& noisy, Votes& votes);

/// Throws an Error unless f gives the same bits for the same input again, at another position and
/// among other neighbours. `shape` is [C, H, W]. No certificate is issued without it. Returns a
/// fingerprint, the SHA-256 of f's logits for fixed inputs: two classifiers that differ in weights,
/// normalisation or arithmetic differ in it.
std::string check_is_function(const BaseClassifier& f, at::IntArrayRef shape);

}  // namespace fedsmooth
