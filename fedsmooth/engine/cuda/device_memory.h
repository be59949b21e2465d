// Owns memory of the GPU, selects GPUs, and turns errors of the CUDA runtime into exceptions. A GPU
// is selected per thread: "current" is the GPU of the calling thread.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/error.h"

namespace fedsmooth {

/// Thrown by check_cuda() when the GPU has too little free memory.
struct OutOfDeviceMemory : Error {
  OutOfDeviceMemory() : Error("the GPU has too little free memory; use --device=cpu") {}
};

/// Throws OutOfDeviceMemory, or a Bug that begins with `what` for every other error, unless the
/// status is success. Clears the runtime's last error.
void check_cuda(cudaError_t status, const char* what);

/// Returns the name of the current GPU.
std::string gpu_name();

/// Returns the number of the current GPU.
int current_gpu();

/// Selects a GPU for the calling thread until the object is destroyed, then the one before.
class OnGpu {
 public:
  explicit OnGpu(int gpu);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_;
};

/// While it lives, arrays that its thread makes get no memory: their bytes are added up instead. So
/// the memory of an object can be computed by making it. A Bug if the thread has one already.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  int64_t bytes() const { return bytes_; }
  void add(int64_t bytes) { bytes_ += bytes; }

 private:
  int64_t bytes_ = 0;
};

/// Return memory of the current GPU, or page-locked memory of the host; null while the thread has
/// an AllocationCount. The caller frees it by cudaFree() or cudaFreeHost(). Throw
/// OutOfDeviceMemory.
void* allocate_on_gpu(int64_t bytes);
void* allocate_on_host(int64_t bytes);

/// Owns an array on the GPU that was current when it was made. Its values are not initialised.
/// While an AllocationCount lives, data() is null and upload() and clear() do nothing.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(int64_t size)
      : data_(static_cast<T*>(allocate_on_gpu(sizeof(T) * (size > 0 ? size : 1)))), size_(size) {}
  /// Copies the values on the default stream. Other streams may read them once that is
  /// synchronised.
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(static_cast<int64_t>(values.size())) {
    upload(values.data(), size_, nullptr);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  int64_t size() const { return size_; }

  /// Enqueues a copy of `count` values from host memory to the array's beginning. Page-locked
  /// memory must stay unchanged until the copy is done.
  void upload(const T* from, int64_t count, cudaStream_t stream) {
    if (data_ == nullptr) return;
    check_cuda(cudaMemcpyAsync(data_, from, sizeof(T) * count, cudaMemcpyHostToDevice, stream),
               "copy to the GPU");
  }
  /// Copies all values to host memory, after the stream's earlier work, and waits for the stream.
  void download(T* to, cudaStream_t stream) const {
    check_cuda(cudaMemcpyAsync(to, data_, sizeof(T) * size_, cudaMemcpyDeviceToHost, stream),
               "copy from the GPU");
    check_cuda(cudaStreamSynchronize(stream), "copy from the GPU");
  }
  std::vector<T> download(cudaStream_t stream) const {
    std::vector<T> values(size_);
    download(values.data(), stream);
    return values;
  }
  /// Enqueues setting all bytes to zero.
  void clear(cudaStream_t stream) {
    if (data_ == nullptr) return;
    check_cuda(cudaMemsetAsync(data_, 0, sizeof(T) * size_, stream), "cudaMemset");
  }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

/// Owns page-locked memory of the host, which the GPU reads and writes at full speed.
template <typename T>
class HostArray {
 public:
  HostArray() = default;
  explicit HostArray(int64_t size)
      : data_(static_cast<T*>(allocate_on_host(sizeof(T) * size))), size_(size) {}
  ~HostArray() { cudaFreeHost(data_); }
  HostArray(const HostArray&) = delete;
  HostArray& operator=(HostArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace fedsmooth
