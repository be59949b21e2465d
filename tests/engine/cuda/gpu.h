// What tests on a GPU share.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fedsmooth/engine/cuda/device_memory.h"

namespace fedsmooth {

/// Skips where there is no GPU.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
};

/// A tensor's values on the GPU.
class DeviceTensor {
 public:
  explicit DeviceTensor(const at::Tensor& values)
      : like_(values.contiguous()), bytes_(static_cast<int64_t>(values.nbytes())) {
    bytes_.upload(static_cast<const uint8_t*>(like_.data_ptr()), bytes_.size(), nullptr);
  }
  void* data() const { return bytes_.data(); }
  float* floats() const { return reinterpret_cast<float*>(bytes_.data()); }
  /// In double.
  at::Tensor read() const {
    const at::Tensor values = at::empty_like(like_);
    bytes_.download(static_cast<uint8_t*>(values.data_ptr()), nullptr);
    return values.to(at::kDouble);
  }

 private:
  at::Tensor like_;
  DeviceArray<uint8_t> bytes_;
};

}  // namespace fedsmooth
