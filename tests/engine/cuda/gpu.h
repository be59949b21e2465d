// What tests on a GPU share.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

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

/// The nearest bfloat16, even on ties, as its bits; and back.
inline uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
inline std::vector<uint16_t> rounded(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(to_bfloat16(value));
  return bits;
}

/// How long launch() takes on the default stream, of many times.
template <class Launch>
double microseconds(const Launch& launch) {
  constexpr int kTimes = 20;
  cudaEvent_t begin = nullptr, end = nullptr;
  check_cuda(cudaEventCreate(&begin), "event");
  check_cuda(cudaEventCreate(&end), "event");
  for (int i = -3; i < kTimes; ++i) {
    if (i == 0) check_cuda(cudaEventRecord(begin), "event");
    launch();
  }
  check_cuda(cudaEventRecord(end), "event");
  check_cuda(cudaEventSynchronize(end), "event");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, begin, end), "event");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ms * 1e3 / kTimes;
}

enum class NumberType { kFloat, kBfloat16, kByte };

/// Values on the GPU, written and read in double.
class DeviceValues {
 public:
  DeviceValues(const std::vector<double>& values, NumberType type)
      : type_(type), bytes_(pack(values, type)) {}
  static DeviceValues zeros(int64_t count, NumberType type) {
    return {std::vector<double>(count), type};
  }

  void* data() const { return bytes_.data(); }
  float* floats() const { return reinterpret_cast<float*>(bytes_.data()); }
  std::vector<double> read() const {
    const std::vector<uint8_t> bytes = bytes_.download(nullptr);
    if (type_ == NumberType::kByte) return {bytes.begin(), bytes.end()};
    if (type_ == NumberType::kFloat) return unpack<float>(bytes, [](float v) { return v; });
    return unpack<uint16_t>(bytes, from_bfloat16);
  }

 private:
  static std::vector<uint8_t> pack(const std::vector<double>& values, NumberType type) {
    if (type == NumberType::kByte) return {values.begin(), values.end()};
    if (type == NumberType::kFloat) return pack<float>(values, [](float v) { return v; });
    return pack<uint16_t>(values, to_bfloat16);
  }
  template <typename T, typename Convert>
  static std::vector<uint8_t> pack(const std::vector<double>& values, const Convert& convert) {
    std::vector<uint8_t> bytes(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      const T number = convert(static_cast<float>(values[i]));
      std::memcpy(bytes.data() + i * sizeof(T), &number, sizeof(T));
    }
    return bytes;
  }
  template <typename T, typename Convert>
  static std::vector<double> unpack(const std::vector<uint8_t>& bytes, const Convert& convert) {
    std::vector<double> values(bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T number;
      std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = convert(number);
    }
    return values;
  }

  NumberType type_;
  DeviceArray<uint8_t> bytes_;
};

}  // namespace fedsmooth
