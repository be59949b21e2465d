// The seam between what counts votes on the GPU and what evaluates a network there: passes over
// batches of one fixed number of rows.
#pragma once

#include <functional>
#include <memory>

#include "fedsmooth/engine/cuda/kernels/batched_votes.h"
#include "fedsmooth/engine/cuda/launches.h"
#include "fedsmooth/model/network.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

class VotePass {
 public:
  /// For images of shape `input`.
  VotePass(int batch, const Shape& input, int classes)
      : batch_(batch), input_(input), classes_(classes) {}
  virtual ~VotePass() = default;

  int batch() const { return batch_; }
  int classes() const { return classes_; }
  int image_area() const { return static_cast<int>(input_[1] * input_[2]); }
  int image_size() const { return static_cast<int>(input_[0]) * image_area(); }
  Launches& launches() { return launches_; }

  /// Images [batch, C, H, W] on the device.
  DeviceArray<float> upload(const Array& images);

  /// Logits [batch, classes] of such images, by what vote() runs.
  virtual Array classify(const DeviceArray<float>& x) = 0;

  /// Images [count, C, H, W] on the device, which the requests to come are of.
  virtual void take_images(const float* /*x*/, int /*count*/) {}
  /// What a list of requests needs beforehand.
  virtual void prepare(const std::vector<VoteRequest>& /*requests*/) {}

  /// Adds the votes of the rows to counts [requests, classes] on the device; does not wait.
  virtual void vote(const NoisyRows& rows, VoteCounter* counts) = 0;

 protected:
  Launches launches_;

 private:
  int batch_;
  Shape input_;
  int classes_;
};

/// A base classifier whose sampler and whose evaluators each have a pass of their own.
BaseClassifier classifier_by(const std::function<std::unique_ptr<VotePass>()>& make, int classes,
                             int batch, const std::string& description);

}  // namespace fedsmooth
