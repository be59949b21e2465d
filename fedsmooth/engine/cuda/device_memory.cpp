#include "fedsmooth/engine/cuda/device_memory.h"

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace {

constexpr int64_t kGranule = 512;  // the runtime allocates multiples of this

thread_local AllocationCount* counted = nullptr;

}  // namespace

AllocationCount::AllocationCount() {
  check(counted == nullptr, "AllocationCount: there is one already");
  counted = this;
}

AllocationCount::~AllocationCount() { counted = nullptr; }

void* allocate_on_gpu(int64_t bytes) {
  void* memory = nullptr;
  if (counted != nullptr) {
    counted->add((bytes + kGranule - 1) / kGranule * kGranule);
  } else {
    check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
  }
  return memory;
}

void* allocate_on_host(int64_t bytes) {
  void* memory = nullptr;
  if (counted == nullptr) check_cuda(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return memory;
}

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error
  if (status == cudaErrorMemoryAllocation) throw OutOfDeviceMemory{};
  throw Bug(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

int current_gpu() {
  int gpu = 0;
  check_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  return gpu;
}

OnGpu::OnGpu(int gpu) : before_(current_gpu()) { check_cuda(cudaSetDevice(gpu), "cudaSetDevice"); }

OnGpu::~OnGpu() { cudaSetDevice(before_); }

std::string gpu_name() {
  int device = 0;
  cudaDeviceProp properties;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace fedsmooth
