// Memory of the GPU, and errors of its runtime as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/error.h"

namespace fedsmooth {

/// Thrown when the GPU has no room; everything else that goes wrong is a bug.
struct OutOfDeviceMemory : Error {
  OutOfDeviceMemory() : Error("the GPU has too little free memory; use --device=cpu") {}
};

void check_cuda(cudaError_t status, const char* what);

/// Name of the GPU in use.
std::string gpu_name();

/// The GPU of the calling thread.
int current_gpu();

/// Makes a GPU that of the calling thread while this lives.
class OnGpu {
 public:
  explicit OnGpu(int gpu);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_;
};

/// While one lives, arrays of its thread take no memory: their bytes are added up instead. What an
/// object would take is so known before it is made.
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

/// Memory of the GPU, and of the host; null while an AllocationCount lives.
void* allocate_on_gpu(int64_t bytes);
void* allocate_on_host(int64_t bytes);

/// An array on the GPU. Not initialised.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(int64_t size)
      : data_(static_cast<T*>(allocate_on_gpu(sizeof(T) * (size > 0 ? size : 1)))), size_(size) {}
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

  void upload(const T* from, int64_t count, cudaStream_t stream) {
    if (data_ == nullptr) return;
    check_cuda(cudaMemcpyAsync(data_, from, sizeof(T) * count, cudaMemcpyHostToDevice, stream),
               "copy to the GPU");
  }
  /// Waits for the stream.
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
  void clear(cudaStream_t stream) {
    if (data_ == nullptr) return;
    check_cuda(cudaMemsetAsync(data_, 0, sizeof(T) * size_, stream), "cudaMemset");
  }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

/// Memory of the host that the GPU copies from and to at full speed.
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
