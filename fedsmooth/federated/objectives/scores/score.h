// How the logits of an image's noisy copies are scored: what an objective's loss and its gradient
// are made of. A score has one source for the CPU, which runs it in double, and for the GPU, which
// runs it in float: a struct with a static function `add(ScoredImage<Real>&)`, one file each.
//
// With z_i the logits of copy i, p_i = softmax z_i and s = mean_i p_i, a score sees one image
// alone. It writes `copies` times the image's loss and gradient; the caller divides by the number
// of rows.
#pragma once

#include <cmath>

#include "fedsmooth/base/host_device.h"

namespace fedsmooth {

/// The scores that the GPU has kernels for.
enum class ScoreKind { kCrossEntropy, kConsistency, kStability, kMacer, kSmoothMix, kCatRs };

/// A loss is the sum of these; a score leaves those that it does not have at zero.
struct Terms {
  double fit = 0;      // how well the labels are answered
  double robust = 0;   // how much the answers to noisy copies differ, or how small the radius is
  double entropy = 0;  // of the mean answer
};

/// The numbers of an objective that its score reads.
template <class Real>
struct ScoreWeights {
  Real lambda = 0, eta = 0, sigma = 0;
};

/// One image. Rows are `stride` apart.
template <class Real>
struct ScoredImage {
  int copies = 0, classes = 0, stride = 0;
  const Real* logits = nullptr;  // [copies, stride]
  int y = 0;
  ScoreWeights<Real> weights;
  Real mix = 0;                  // of SmoothMix: how far the second half is from the first
  Real draw = 0;                 // uniform in [0, 1), for scores that are random
  const Real* target = nullptr;  // [classes], for scores that read a teacher's votes
  Real* p = nullptr;             // [copies, stride]: room for the probabilities
  Real* scratch = nullptr;       // scratch_size()
  Real* gradient = nullptr;      // [copies, stride], written by the score
  Terms terms;                   // added up by the score

  FEDSMOOTH_HOST_DEVICE static constexpr int scratch_size(int copies, int stride) {
    return 2 * stride + copies;
  }
};

/// log p_k = (z_k - largest) - log_sum.
template <class Real>
struct LogSoftmax {
  const Real* z;
  Real largest, log_sum;

  FEDSMOOTH_HOST_DEVICE Real operator[](int k) const { return (z[k] - largest) - log_sum; }
};

/// Writes p = softmax z. Finite for all finite logits, as are the logarithms.
template <class Real>
FEDSMOOTH_HOST_DEVICE LogSoftmax<Real> softmax(const Real* z, int classes, Real* p) {
  Real largest = z[0], sum = 0;
  for (int k = 1; k < classes; ++k) largest = z[k] > largest ? z[k] : largest;
  for (int k = 0; k < classes; ++k) sum += p[k] = std::exp(z[k] - largest);
  for (int k = 0; k < classes; ++k) p[k] /= sum;
  return {z, largest, std::log(sum)};
}

}  // namespace fedsmooth
