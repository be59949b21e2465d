// A stream that kernels are launched on, and how long they take.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

class Launches {
 public:
  /// Kernels of an `urgent` stream go before those of others that wait for room on the GPU.
  explicit Launches(bool urgent = false);
  /// Launches on a stream that the caller owns and that must outlive this.
  explicit Launches(cudaStream_t foreign) : stream_(foreign), owns_stream_(false) {}
  ~Launches();
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// What a launch on the stream returned, what its time is counted as, and the operations and
  /// bytes of it, where they are known.
  void add(const char* phase, cudaError_t status, double operations = 0, double bytes = 0);

  /// Each phase of what `enqueue` adds; waits for it.
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
