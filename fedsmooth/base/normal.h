// Philox words to normals: the arithmetic of fill_normal(), shared by g++ and nvcc. Only additions,
// multiplications and square roots, each rounded once and never contracted, so that every CPU and
// every GPU gives the same bits. Private to the implementations of base/random.h.
#pragma once

#include <Random123/philox.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define FEDSMOOTH_INLINE __host__ __device__ __forceinline__
#else
#define FEDSMOOTH_INLINE inline __attribute__((always_inline))
#endif

namespace fedsmooth {

/// Philox4x32-10 at one counter.
FEDSMOOTH_INLINE philox4x32_ctr_t philox(uint64_t key, uint32_t block, uint32_t sample,
                                         uint32_t item, uint32_t client) {
  const philox4x32_ctr_t counter = {{block, sample, item, client}};
  const philox4x32_key_t words = {{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}};
  return philox4x32_R(10, counter, words);
}

// nvcc fuses a * b + c unless these functions are used; for g++ there is -ffp-contract=off.
FEDSMOOTH_INLINE float multiply(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

FEDSMOOTH_INLINE float add(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

FEDSMOOTH_INLINE float multiply_add(float a, float b, float c) { return add(multiply(a, b), c); }

FEDSMOOTH_INLINE float square_root(float a) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(a);
#else
  return std::sqrt(a);
#endif
}

template <typename To, typename From>
FEDSMOOTH_INLINE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

/// -2 ln(u 2^-scale), for u 2^-scale in (0, 1]. Polynomials are minimax fits with errors below
/// 4e-8.
FEDSMOOTH_INLINE float minus_two_log(float u, int32_t scale) {
  const int32_t bits = bits_as<int32_t>(u);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // mantissa in [sqrt(1/2), sqrt(2))
  const float z = add(bits_as<float>(bits - exponent * (1 << 23)), -1.0f);
  // ln(1 + z) = z - z^2 / 2 + z^3 q(z)
  float q = 0.08917782741010676f;
  q = multiply_add(q, z, -0.14350188132093855f);
  q = multiply_add(q, z, 0.14876982190012147f);
  q = multiply_add(q, z, -0.1656563615479614f);
  q = multiply_add(q, z, 0.19965396495467386f);
  q = multiply_add(q, z, -0.2500174690620923f);
  q = multiply_add(q, z, 0.33333858100294433f);
  const float zz = multiply(z, z);
  const float log_mantissa = add(multiply_add(multiply(q, z), zz, multiply(-0.5f, zz)), z);
  const float halvings = static_cast<float>(scale - exponent);
  const float value = multiply(2.0f, add(multiply(halvings, 0.693147180559945f), -log_mantissa));
  return value < 0.0f ? 0.0f : value;
}

/// Box-Muller: two normals from the square of their radius, and a word for the angle.
FEDSMOOTH_INLINE void normals_at(float squared_radius, uint32_t angle_word, float& first,
                                 float& second) {
  const float radius = square_root(squared_radius);
  // The angle is a whole number of quarter turns plus t of one, |t| <= 1/2.
  const uint32_t quarter = (angle_word + 0x20000000u) >> 30;
  const float t =
      multiply(static_cast<float>(static_cast<int32_t>(angle_word - (quarter << 30))), 0x1p-30f);
  const float tt = multiply(t, t);
  float sine = multiply_add(-0.004602176989273604f, tt, 0.07968022806443968f);
  sine = multiply_add(sine, tt, -0.645963478641457f);
  sine = multiply(multiply_add(sine, tt, 1.5707963219668042f), t);
  float cosine = multiply_add(0.000904021631522323f, tt, -0.020860288488438f);
  cosine = multiply_add(cosine, tt, 0.2536692440268552f);
  cosine = multiply_add(multiply_add(cosine, tt, -1.2337005433533386f), tt, 1.0f);
  const bool odd = (quarter & 1) != 0;
  const uint32_t x = bits_as<uint32_t>(odd ? sine : cosine) ^ (((quarter + 1) & 2) << 30);
  const uint32_t y = bits_as<uint32_t>(odd ? cosine : sine) ^ ((quarter & 2) << 30);
  first = multiply(radius, bits_as<float>(x));
  second = multiply(radius, bits_as<float>(y));
}

/// Two words to two normals, with the 31-bit uniform u = (word / 2 + 1/2) 2^-31.
FEDSMOOTH_INLINE void normal_pair(uint32_t radius_word, uint32_t angle_word, float& first,
                                  float& second) {
  const float u = add(static_cast<float>(static_cast<int32_t>(radius_word >> 1)), 0.5f);
  normals_at(minus_two_log(u, 31), angle_word, first, second);
}

/// Words below this value have 16 leading zero bits: 32 more bits are drawn for their uniform.
constexpr uint32_t kTailWord = 1 << 16;
/// Block b + kFurtherBits holds the additional bits for block b.
constexpr uint32_t kFurtherBits = 1u << 31;

/// As normal_pair(), for a radius word below kTailWord: with the 64-bit uniform
/// u = (word 2^32 + further + 1/2) 2^-64.
FEDSMOOTH_INLINE void tail_pair(uint32_t radius_word, uint32_t further, uint32_t angle_word,
                                float& first, float& second) {
  const float u = add(static_cast<float>(uint64_t{radius_word} << 32 | further), 0.5f);
  normals_at(minus_two_log(u, 64), angle_word, first, second);
}

/// Writes coordinates 4 block .. 4 block + 3 of a sample of fill_noise(), from the four words of
/// the block.
FEDSMOOTH_INLINE void to_noise(const philox4x32_ctr_t& words, uint64_t key, uint32_t block,
                               uint32_t sample, uint32_t item, uint32_t client, float* out) {
  normal_pair(words.v[0], words.v[1], out[0], out[1]);
  normal_pair(words.v[2], words.v[3], out[2], out[3]);
  if (words.v[0] >= kTailWord && words.v[2] >= kTailWord) return;
  const philox4x32_ctr_t more = philox(key, block | kFurtherBits, sample, item, client);
  if (words.v[0] < kTailWord) tail_pair(words.v[0], more.v[0], words.v[1], out[0], out[1]);
  if (words.v[2] < kTailWord) tail_pair(words.v[2], more.v[2], words.v[3], out[2], out[3]);
}

FEDSMOOTH_INLINE void draw_noise(uint64_t key, uint32_t block, uint32_t sample, uint32_t item,
                                 uint32_t client, float* out) {
  to_noise(philox(key, block, sample, item, client), key, block, sample, item, client, out);
}

}  // namespace fedsmooth
