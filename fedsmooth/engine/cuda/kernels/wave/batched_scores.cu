#include "fedsmooth/engine/cuda/kernels/wave/batched_scores.h"

#include "fedsmooth/engine/cuda/kernels/block_sums.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/federated/objectives/scores/cat_rs.h"
#include "fedsmooth/federated/objectives/scores/consistency.h"
#include "fedsmooth/federated/objectives/scores/cross_entropy.h"
#include "fedsmooth/federated/objectives/scores/macer.h"
#include "fedsmooth/federated/objectives/scores/smooth_mix.h"
#include "fedsmooth/federated/objectives/scores/stability.h"

namespace fedsmooth {
namespace {

// Returns an image of a client, with its part of the scratch memory.
__device__ ScoredImage<float> image_of(const WaveShape& s, const ScoreStep& step, int client,
                                       int index) {
  const int64_t number = static_cast<int64_t>(client) * s.batch + index;
  const int64_t row = static_cast<int64_t>(client) * s.rows + index * s.noises;
  ScoredImage<float> image;
  image.copies = s.noises;
  image.classes = s.classes;
  image.stride = s.padded_classes;
  image.logits = step.logits + row * s.padded_classes;
  image.y = step.y[number];
  image.weights = step.weights[client];
  if (step.mix != nullptr) image.mix = step.mix[number];
  if (step.draws != nullptr) image.draw = step.draws[number];
  if (step.targets != nullptr) {
    const int64_t chosen = (static_cast<int64_t>(client) * step.steps + *step.step) * s.batch;
    image.target = step.targets + (chosen + index) * s.classes;
  }
  image.p = step.room + number * score_room(s);
  image.gradient = image.p + s.noises * s.padded_classes;
  image.scratch = image.gradient + s.noises * s.padded_classes;
  return image;
}

// Each block scores a client, each thread one image at a time.
template <class Score, class T>
__global__ void __launch_bounds__(kThreads) score_kernel(WaveShape s, ScoreStep step) {
  const int client = blockIdx.x;
  T* out = static_cast<T*>(step.out) + static_cast<int64_t>(client) * s.rows * s.padded_classes;
  const float count = static_cast<float>(s.batch * s.noises);
  Terms sums;
  for (int index = threadIdx.x; index < s.batch; index += kThreads) {
    ScoredImage<float> image = image_of(s, step, client, index);
    Score::add(image);
    float mean = 0.0f;
    for (int i = 0; i < s.noises; ++i) {
      mean += image.p[i * image.stride + image.y];
      T* row = out + (index * s.noises + i) * s.padded_classes;
      for (int k = 0; k < s.classes; ++k) {
        store(row + k, image.gradient[i * image.stride + k] / count);
      }
    }
    if (step.seen != nullptr && *step.step == 0) {
      step.seen[client * s.batch + index] = mean / static_cast<float>(s.noises);
    }
    sums.fit += image.terms.fit;
    sums.robust += image.terms.robust;
    sums.entropy += image.terms.entropy;
  }
  const double fit = sum_block(sums.fit), robust = sum_block(sums.robust);
  const double entropy = sum_block(sums.entropy);
  if (threadIdx.x != 0) return;
  step.terms[client].fit += fit / count;
  step.terms[client].robust += robust / count;
  step.terms[client].entropy += entropy / count;
}

template <class Score>
cudaError_t launch(Precision precision, const WaveShape& shape, const ScoreStep& step,
                   cudaStream_t stream) {
  return launch_in(precision, [&](auto value) {
    score_kernel<Score, decltype(value)><<<shape.clients, kThreads, 0, stream>>>(shape, step);
  });
}

}  // namespace

cudaError_t take_score(Precision precision, const WaveShape& shape, const ScoreStep& step,
                       cudaStream_t stream) {
  switch (step.kind) {
    case ScoreKind::kCrossEntropy:
      return launch<CrossEntropy>(precision, shape, step, stream);
    case ScoreKind::kConsistency:
      return launch<Consistency>(precision, shape, step, stream);
    case ScoreKind::kStability:
      return launch<Stability>(precision, shape, step, stream);
    case ScoreKind::kMacer:
      return launch<Macer>(precision, shape, step, stream);
    case ScoreKind::kSmoothMix:
      return launch<SmoothMix>(precision, shape, step, stream);
    case ScoreKind::kCatRs:
      return launch<CatRs>(precision, shape, step, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace fedsmooth
