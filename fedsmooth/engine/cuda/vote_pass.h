// The seam between what counts votes on the GPU and what evaluates a network there: passes over
// batches of one fixed number of rows.
#pragma once

#include <functional>
#include <memory>

#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"
#include "fedsmooth/engine/cuda/launches.h"
#include "fedsmooth/model/network.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Logits in the GPU's memory: those of row r begin at values + r stride.
struct DeviceLogits {
  const float* values = nullptr;
  int stride = 0;
};

class VotePass {
 public:
  /// For images of shape `input`.
  VotePass(int batch, const Shape& input, int classes)
      : batch_(batch), input_(input), classes_(classes) {}
  /// For launches on a stream that the caller owns.
  VotePass(int batch, const Shape& input, int classes, cudaStream_t stream)
      : launches_(stream), batch_(batch), input_(input), classes_(classes) {}
  virtual ~VotePass() = default;

  int batch() const { return batch_; }
  int classes() const { return classes_; }
  const Shape& input() const { return input_; }
  int image_area() const { return static_cast<int>(input_[1] * input_[2]); }
  int image_size() const { return static_cast<int>(input_[0]) * image_area(); }
  Launches& launches() { return launches_; }

  /// Images [batch, C, H, W] on the device.
  DeviceArray<float> upload(const Array& images);

  /// Enqueues the evaluation of images [batch, C, H, W] on the device, which stay as they are, by
  /// what enqueue_copies() runs. The logits [batch, classes] stay until the next call of either
  /// function. Does not wait.
  virtual DeviceLogits enqueue_images(const float* x) = 0;
  /// Enqueues the evaluation of noisy copies. Logits of rows that are not in the list mean nothing.
  virtual DeviceLogits enqueue_copies(const NoisyRows& rows) = 0;

  /// Logits [batch, classes] of images on the device, by enqueue_images(). Waits for them.
  Array classify(const DeviceArray<float>& x);

  /// Adds the votes of the rows to counts [requests, classes] on the device, by the logits of
  /// enqueue_copies(); does not wait.
  virtual void vote(const NoisyRows& rows, VoteCounter* counts);

 protected:
  Launches launches_;

 private:
  int batch_;
  Shape input_;
  int classes_;
};

/// Returns why no sampler on the GPU draws a law; empty if all do. Our kernels draw the copies for
/// every evaluator on the GPU.
std::string gpu_law_refusal(const NoiseLaw& law);

/// Makes passes over copies that are drawn under `law`.
using MakePass = std::function<std::unique_ptr<VotePass>(const NoiseLaw& law)>;

/// A classifier on the GPU: what makes its passes, and what all of them have in common.
struct VotePasses {
  MakePass make;
  int classes = 0, batch = 0;
  std::string description;
  /// Above 0: the majority of so many networks; a pass then gives logits [groups, classes] of a
  /// row.
  int groups = 0;
};

/// A base classifier whose samplers and whose evaluators each have a pass of their own, on the GPU
/// that is current where they are made. All passes compute the same function.
BaseClassifier classifier_by(const VotePasses& passes);

}  // namespace fedsmooth
