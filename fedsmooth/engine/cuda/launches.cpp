#include "fedsmooth/engine/cuda/launches.h"

namespace fedsmooth {

Launches::Launches(bool urgent) {
  int low = 0, high = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange");
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? high : low),
             "cudaStreamCreate");
}

Launches::~Launches() {
  if (owns_stream_ && stream_ != nullptr) cudaStreamDestroy(stream_);
}

void Launches::add(const char* phase, cudaError_t status, double operations, double bytes) {
  check_cuda(status, phase);
  if (marks_are_set_) mark(phase, operations, bytes);
}

void Launches::mark(const char* phase, double operations, double bytes) {
  cudaEvent_t end = nullptr;
  check_cuda(cudaEventCreate(&end), "cudaEventCreate");
  check_cuda(cudaEventRecord(end, stream_), "cudaEventRecord");
  marks_.push_back({phase, end, operations, bytes});
}

void Launches::begin_marks() {
  marks_are_set_ = true;
  mark("begin", 0, 0);
}

std::map<std::string, PhaseCost> Launches::end_marks() {
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  std::map<std::string, PhaseCost> costs;
  for (size_t i = 1; i < marks_.size(); ++i) {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, marks_[i - 1].end, marks_[i].end), "elapsed time");
    PhaseCost& cost = costs[marks_[i].phase];
    cost.seconds += ms * 1e-3;
    cost.operations += marks_[i].operations;
    cost.bytes += marks_[i].bytes;
  }
  for (const Mark& mark : marks_) cudaEventDestroy(mark.end);
  marks_.clear();
  marks_are_set_ = false;
  return costs;
}

}  // namespace fedsmooth
