// The seam between the sampler that counts votes on the GPU and the evaluators of networks there:
// passes over batches of one fixed number of rows.
#pragma once

#include <functional>
#include <memory>

#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"
#include "fedsmooth/engine/cuda/launches.h"
#include "fedsmooth/model/network.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Logits in the GPU's memory: those of row r begin at values + r * stride.
struct DeviceLogits {
  const float* values = nullptr;
  int stride = 0;
};

/// Evaluates one batch at a time. One thread at a time may use it, and its GPU must be current.
class VotePass {
 public:
  /// For images of shape `input`. Makes a stream of its own.
  VotePass(int batch, const Shape& input, int classes)
      : batch_(batch), input_(input), classes_(classes) {}
  /// For images of shape `input`. Launches on a stream that the caller owns and that must outlive
  /// it.
  VotePass(int batch, const Shape& input, int classes, cudaStream_t stream)
      : launches_(stream), batch_(batch), input_(input), classes_(classes) {}
  virtual ~VotePass() = default;

  int batch() const { return batch_; }
  int classes() const { return classes_; }
  const Shape& input() const { return input_; }
  int image_area() const { return static_cast<int>(input_[1] * input_[2]); }
  int image_size() const { return static_cast<int>(input_[0]) * image_area(); }
  Launches& launches() { return launches_; }

  /// Copies images [batch, C, H, W] to the device, and waits.
  DeviceArray<float> upload(const Array& images);

  /// Enqueues the evaluation of images [batch, C, H, W] on the device, which are not changed, by
  /// the kernels of enqueue_copies(). The logits [batch, classes] are valid until the next call of
  /// either function. Does not wait.
  virtual DeviceLogits enqueue_images(const float* x) = 0;
  /// Enqueues the evaluation of noisy copies, and does not wait. The logits are valid until the
  /// next call of either function; those of rows beyond `rows.total` are undefined.
  virtual DeviceLogits enqueue_copies(const NoisyRows& rows) = 0;

  /// Returns the logits [batch, classes] of images on the device, by enqueue_images(), and waits.
  Array classify(const DeviceArray<float>& x);

  /// Enqueues adding the votes of the rows, by the logits of enqueue_copies(), to counts
  /// [requests, classes] on the device. Does not wait.
  virtual void vote(const NoisyRows& rows, VoteCounter* counts);

 protected:
  Launches launches_;

 private:
  int batch_;
  Shape input_;
  int classes_;
};

/// Returns why samplers on the GPU cannot draw a law; empty if they can. It is the same for every
/// evaluator, because our kernels draw the copies.
std::string gpu_law_refusal(const NoiseLaw& law);

/// Makes a pass over copies that are drawn under `law`, on the current GPU.
using MakePass = std::function<std::unique_ptr<VotePass>(const NoiseLaw& law)>;

/// A classifier on the GPU: a maker of passes, which all compute the same function, and their
/// common properties.
struct VotePasses {
  MakePass make;
  int classes = 0, batch = 0;
  std::string description;
  /// Above 0: the majority of so many networks; a pass then gives logits [groups, classes] of a
  /// row.
  int groups = 0;
};

/// Returns a base classifier on the GPU that is current during this call. Each of its samplers and
/// evaluators has a pass of its own.
BaseClassifier classifier_by(const VotePasses& passes);

}  // namespace fedsmooth
