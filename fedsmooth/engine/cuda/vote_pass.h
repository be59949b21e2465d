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
  int image_area() const { return static_cast<int>(input_[1] * input_[2]); }
  int image_size() const { return static_cast<int>(input_[0]) * image_area(); }
  Launches& launches() { return launches_; }

  /// Images [batch, C, H, W] on the device.
  DeviceArray<float> upload(const Array& images);

  /// Logits [batch, classes] of such images, which stay as they are, by what vote() runs.
  virtual Array classify(const DeviceArray<float>& x) = 0;

  /// Adds the votes of the rows to counts [requests, classes] on the device; does not wait.
  virtual void vote(const NoisyRows& rows, VoteCounter* counts) = 0;

 protected:
  Launches launches_;

 private:
  int batch_;
  Shape input_;
  int classes_;
};

/// Why no sampler on the GPU draws a law; empty if they do. Whoever evaluates the copies there, our
/// kernels draw them.
std::string gpu_law_refusal(const NoiseLaw& law);

/// Makes passes over copies that are drawn under `law`.
using MakePass = std::function<std::unique_ptr<VotePass>(const NoiseLaw& law)>;

/// A base classifier whose samplers and whose evaluators each have a pass of their own, on the GPU
/// that is current where they are made. All passes compute the same function.
BaseClassifier classifier_by(const MakePass& make, int classes, int batch,
                             const std::string& description);

}  // namespace fedsmooth
