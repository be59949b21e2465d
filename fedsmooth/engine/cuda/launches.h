// A stream on which kernels are launched, and measurements of the time that they take. For one
// thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fedsmooth/base/phase_cost.h"
#include "fedsmooth/engine/cuda/device_memory.h"

namespace fedsmooth {

class Launches {
 public:
  /// Makes a stream of its own on the current GPU, which does not wait for the default stream.
  /// Thread blocks of an `urgent` stream start before waiting ones of other streams.
  explicit Launches(bool urgent = false);
  /// Launches on a stream that the caller owns and that must outlive this object.
  explicit Launches(cudaStream_t foreign) : stream_(foreign), owns_stream_(false) {}
  ~Launches();
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// Throws unless `status`, which a launch on the stream returned, is success; see check_cuda().
  /// During measure() the launch counts under `phase`, a string literal, with its operations and
  /// bytes; 0: unknown.
  void add(const char* phase, cudaError_t status, double operations = 0, double bytes = 0);

  /// Calls `enqueue`, waits for the stream and returns the cost of each phase that it added.
  template <class Enqueue>
  std::map<std::string, PhaseCost> measure(const Enqueue& enqueue) {
    begin_marks();
    enqueue();
    return end_marks();
  }

 private:
  struct Mark {
    const char* phase;
    cudaEvent_t end;
    double operations, bytes;
  };

  void begin_marks();
  void mark(const char* phase, double operations, double bytes);
  std::map<std::string, PhaseCost> end_marks();

  cudaStream_t stream_ = nullptr;
  bool owns_stream_ = true;
  bool marks_are_set_ = false;
  std::vector<Mark> marks_;
};

}  // namespace fedsmooth
