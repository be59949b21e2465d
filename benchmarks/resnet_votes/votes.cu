#include "votes.h"

#include <cuda_bf16.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "fedsmooth/base/normal.h"
#include "warpgroup_stage.cuh"

namespace resnet {
namespace {

//                  channels, width, strip, images, tiles, resident, prefetch
using Wide = Strips<16, 32, 16, 1, 1, 3, true>;
using WideEngine = StripEngine<Wide>;
#ifndef RESNET_MIDDLE_WARPGROUP
using Middle = Strips<32, 16, 16, 1, 1, 6, false>;
using MiddleEngine = StripEngine<Middle>;
#else
//                  channels, width, halo, images, warps, resident
using Middle = Layout<32, 16, 1, 2, 4, 2>;
using MiddleEngine = WarpgroupEngine<Middle>;
#endif
#ifndef RESNET_DEEP_STRIPS
using Deep = Layout<64, 8, 1, 4, 4, 2>;
using DeepEngine = WarpgroupEngine<Deep>;
#else
using Deep = Strips<64, 8, 8, 4, 2, 2, false>;
using DeepEngine = StripEngine<Deep>;
#endif

constexpr int kMaxClasses = 128;

struct Stem {
  const uint4* weights = nullptr;  // [dy, lane]
  const float* bias = nullptr;
  float mean[3], scale[3];
};

struct Head {
  const float *weights = nullptr, *bias = nullptr;  // [class, channel], [class]
  int classes = 0;
  int* counts = nullptr;
  float* logits = nullptr;
};

// Of which image the copy at `place` of the list is.
__device__ int image_of(const Rows& r, int64_t place) {
  int low = 0, high = r.images;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (r.copies[middle].first <= place ? low : high) = middle;
  }
  return low;
}

// The network's input in shared memory: pixels of 8 bytes (three channels and a zero), with a
// border of zeros. One product of depth 16 then takes four neighbouring pixels of a row.
struct NoisyImage {
  static constexpr int kPitch = 8 * 36, kSize = 34 * kPitch;
};

// x + sigma e in float32, normalised, rounded once. A thread makes four pixels of a row.
__device__ void draw_image(const Rows& r, int64_t place, const Stem& stem, uint32_t image) {
  const int of = image_of(r, place);
  const Copies c = r.copies[of];
  const auto sample = static_cast<uint32_t>(place - c.first);
  const float4* x = reinterpret_cast<const float4*>(r.x) + of * 768;
#pragma unroll 1
  for (int quad = threadIdx.x; quad < 256; quad += Wide::kThreads) {
    float value[3][4];
#pragma unroll
    for (int channel = 0; channel < 3; ++channel) {
      const auto words = fedsmooth::philox(c.key, channel * 256 + quad, sample, c.item, c.client);
      float drawn[4];
      fedsmooth::normal_pair(words.v[0], words.v[1], drawn[0], drawn[1]);
      fedsmooth::normal_pair(words.v[2], words.v[3], drawn[2], drawn[3]);
      const float4 pixels = __ldg(x + channel * 256 + quad);
      const float clean[4] = {pixels.x, pixels.y, pixels.z, pixels.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float noisy = fedsmooth::add(clean[j], fedsmooth::multiply(c.sigma, drawn[j]));
        value[channel][j] = (noisy - stem.mean[channel]) * stem.scale[channel];
      }
    }
    const uint32_t to = image + (quad / 8 + 1) * NoisyImage::kPitch + (quad % 8 * 4 + 1) * 8;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      store_word(to + j * 8, pack<false>(value[0][j], value[1][j]));
      store_word(to + j * 8 + 4, pack<false>(value[2][j], 0.0f));
    }
  }
}

// The first layer, walking down the rows as convolve() does.
__device__ void run_stem(const Stem& stem, uint32_t image, uint32_t x) {
  using S = Strips<16, 32, 16, 1, 1, Wide::kResident, false>;
  static_assert(S::kThreads == Wide::kThreads && S::kMap == Wide::kMap);
  const Place<S> place;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint4 w[3];
#pragma unroll
  for (int dy = 0; dy < 3; ++dy) w[dy] = load_weights(stem.weights + dy * 32 + lane);
  float2 bias[2];
  load_bias(bias, stem.bias);
  // Pixel x0 + lane / 4, from the pixel to its left on.
  const uint32_t in = image + warp / 2 * S::kStripRows * NoisyImage::kPitch +
                      (warp % 2 * 16 + lane / 4) * 8 + lane % 4 * 4;
  const uint32_t out = x + place.output;
  const auto fetch = [&](int row) -> Fragment {
    const uint32_t at = in + (row + 1) * NoisyImage::kPitch;
    return {{load_word(at), load_word(at + 64), load_word(at + 16), load_word(at + 80)}};
  };
  Sums sums[3];
  Fragment next = fetch(-1);
#pragma unroll
  for (int row = -1; row <= S::kStripRows; ++row) {
    if (row + 1 < S::kStripRows) sums[(row + 1) % 3].start(bias);
    const Fragment a = next;
    if (row < S::kStripRows) next = fetch(row + 1);
#pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
      const int to = row + 1 - dy;
      if (to >= 0 && to < S::kStripRows) sums[to % 3].add(a, w[dy]);
    }
    if (row >= 1) {
      store_fragment(out + (row - 1) * S::kPitch, sums[(row - 1) % 3].packed<true>());
    }
  }
}

__global__ void __launch_bounds__(Wide::kThreads, Wide::kResident)
    wide_stage(Rows rows, Stem stem, LayerList layers, Transition next) {
  extern __shared__ __align__(128) uint8_t memory[];
  const uint32_t x = shared_address(memory), h = x + Wide::kMaps, image = h;
  const int64_t place = rows.begin + blockIdx.x;
  if (place >= rows.total) return;
  static_assert(NoisyImage::kSize <= Wide::kMap);
  for (int i = threadIdx.x; i < NoisyImage::kSize / 16; i += Wide::kThreads) {
    store_zero_16(image + i * 16);
  }
  clear_borders<Wide>(x);
  __syncthreads();
  draw_image(rows, place, stem, image);
  __syncthreads();
  run_stem(stem, image, x);
  run_layers<WideEngine, false, Wide::kPrefetch>(layers, x, h, [&] {
    __syncthreads();
    clear_borders<Wide>(h);  // seen by the second layer, after the first one's barrier
  });
  enter_next_stage<Wide>(next, x, blockIdx.x);
}

// Starts copies of the thread block's maps from the stage before.
template <class S>
__device__ void load_maps(uint32_t x, uint32_t h, const uint4* x_in, const uint4* h_in) {
  constexpr int kCells = S::kGroups * S::kWidth * S::kWidth;
#pragma unroll 1
  for (int i = 0; i < S::kImages; ++i) {
    const int64_t row = int64_t{blockIdx.x} * S::kImages + i;
    load_map<S>(h + i * S::kMap, h_in + kCells * row);
    load_map<S>(x + i * S::kMap, x_in + kCells * row);
    clear_borders<S>(x + i * S::kMap);
    clear_borders<S>(h + i * S::kMap);
  }
}

__device__ void wait_for_maps() {
  wait_for_copies();
  show_to_products();
  __syncthreads();
}

__global__ void __launch_bounds__(Middle::kThreads, Middle::kResident)
    middle_stage(const uint4* h_in, const uint4* x_in, LayerList layers, Transition next) {
  extern __shared__ __align__(128) uint8_t memory[];
  const uint32_t x = shared_address(memory), h = x + Middle::kMaps;
  load_maps<Middle>(x, h, x_in, h_in);
  run_layers<MiddleEngine, true, false>(layers, x, h, wait_for_maps);
  enter_next_stage<Middle>(next, x, int64_t{blockIdx.x} * Middle::kImages);
}

// Means over the pixels, [image, channel], from the maps x. A thread takes two channels.
__device__ void average(float* means, uint32_t x) {
  constexpr int kPairs = Deep::kChannels / 2;
  for (int i = threadIdx.x; i < Deep::kImages * kPairs; i += Deep::kThreads) {
    const int pair = i % kPairs;
    const uint32_t from = x + i / kPairs * Deep::kMap + pair / 4 * Deep::kPlane + pair % 4 * 4 +
                          Deep::kHalo * Deep::kPitch + 16;
    float low = 0, high = 0;
#pragma unroll 8
    for (int pixel = 0; pixel < 64; ++pixel) {
      const uint32_t word = load_word(from + pixel / 8 * Deep::kPitch + pixel % 8 * 16);
      low += low_half(word);
      high += high_half(word);
    }
    means[2 * i] = low * (1.0f / 64);
    means[2 * i + 1] = high * (1.0f / 64);
  }
}

__device__ void vote(const Rows& rows, const Head& head, const float* logits, int row) {
  const int64_t place = rows.begin + row;
  if (row >= rows.rows || place >= rows.total) return;
  int best = 0;
  bool finite = true;
  for (int k = 0; k < head.classes; ++k) {
    finite = finite && isfinite(logits[k]);
    if (logits[k] > logits[best]) best = k;
    if (head.logits) head.logits[int64_t{row} * head.classes + k] = logits[k];
  }
  if (finite) atomicAdd(head.counts + image_of(rows, place) * head.classes + best, 1);
}

__global__ void __launch_bounds__(Deep::kThreads, Deep::kResident)
    deep_stage(const uint4* h_in, const uint4* x_in, LayerList layers, Rows rows, Head head) {
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ float means[Deep::kImages * Deep::kChannels];
  __shared__ float logits[Deep::kImages * kMaxClasses];
  const uint32_t x = shared_address(memory), h = x + Deep::kMaps;
  const int first = blockIdx.x * Deep::kImages;
  load_maps<Deep>(x, h, x_in, h_in);
  run_layers<DeepEngine, true, false>(layers, x, h, wait_for_maps);
  average(means, x);
  __syncthreads();
  for (int i = threadIdx.x; i < Deep::kImages * head.classes; i += Deep::kThreads) {
    const int image = i / head.classes, k = i % head.classes;
    float sum = __ldg(head.bias + k);
    for (int c = 0; c < Deep::kChannels; ++c) {
      sum += means[image * Deep::kChannels + c] * __ldg(head.weights + k * Deep::kChannels + c);
    }
    logits[image * kMaxClasses + k] = sum;
  }
  __syncthreads();
  if (threadIdx.x < Deep::kImages) {
    vote(rows, head, logits + threadIdx.x * kMaxClasses, first + threadIdx.x);
  }
}

// ---- host ----

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

uint32_t pair_of(float low, float high) {
  const auto bits = [](float v) {
    const __nv_bfloat16 b = __float2bfloat16(v);
    uint16_t u;
    memcpy(&u, &b, 2);
    return static_cast<uint32_t>(u);
  };
  return bits(low) | bits(high) << 16;
}

// Right factors as the lanes hold them; value(k, n) of a factor [16, 16].
template <class Value>
void pack_factor(std::vector<uint4>& out, const Value& value) {
  for (int lane = 0; lane < 32; ++lane) {
    const int k = lane % 4 * 2, n = lane / 4;
    uint32_t w[4];
    for (int i = 0; i < 4; ++i) {
      const int kk = k + i % 2 * 8, nn = n + i / 2 * 8;
      w[i] = pair_of(value(kk, nn), value(kk + 1, nn));
    }
    out.push_back({w[0], w[1], w[2], w[3]});
  }
}

// Left factors likewise; value(m, k) of a factor [16, 16].
template <class Value>
void pack_left_factor(std::vector<uint4>& out, const Value& value) {
  for (int lane = 0; lane < 32; ++lane) {
    const int k = lane % 4 * 2, m = lane / 4;
    uint32_t w[4];
    for (int i = 0; i < 4; ++i) {
      const int kk = k + i / 2 * 8, mm = m + i % 2 * 8;
      w[i] = pair_of(value(mm, kk), value(mm, kk + 1));
    }
    out.push_back({w[0], w[1], w[2], w[3]});
  }
}

// [16 outputs, chunk of 16 inputs, dx, dy, lane].
void pack_conv(std::vector<uint4>& out, const FoldedConv& c) {
  const int size = c.kernel;
  for (int block = 0; block < c.out / 16; ++block) {
    for (int chunk = 0; chunk < c.in / 16; ++chunk) {
      for (int dx = 0; dx < size; ++dx) {
        for (int dy = 0; dy < size; ++dy) {
          pack_factor(out, [&](int k, int n) {
            return c.weight[(((block * 16 + n) * c.in + chunk * 16 + k) * size + dy) * size + dx];
          });
        }
      }
    }
  }
}

// Left factors for WarpgroupEngine, [warp, input row, dx, chunk of 16 inputs, lane].
void pack_folded(std::vector<uint4>& out, const FoldedConv& c) {
  const int fold = 64 / c.out;
  for (int warp = 0; warp < 4; ++warp) {
    const int first = warp * 16 % c.out, row = warp * 16 / c.out;
    for (int i = 0; i < fold + 2; ++i) {
      for (int dx = 0; dx < 3; ++dx) {
        for (int chunk = 0; chunk < c.in / 16; ++chunk) {
          const int dy = i - row;
          pack_left_factor(out, [&](int m, int k) {
            if (dy < 0 || dy > 2) return 0.0f;
            return c.weight[(((first + m) * c.in + chunk * 16 + k) * 3 + dy) * 3 + dx];
          });
        }
      }
    }
  }
}

// Depth 16 is four pixels of four channels; the fourth pixel and channel have no weights.
std::vector<uint4> pack_stem(const FoldedConv& c) {
  std::vector<uint4> out;
  for (int dy = 0; dy < 3; ++dy) {
    pack_factor(out, [&](int k, int n) {
      const int dx = k / 4, channel = k % 4;
      return dx < 3 && channel < 3 ? c.weight[((n * 3 + channel) * 3 + dy) * 3 + dx] : 0.0f;
    });
  }
  return out;
}

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    for (void* p : owned_) cudaFree(p);
  }
  template <typename T>
  T* make(int64_t count) {
    void* p = nullptr;
    check(cudaMalloc(&p, count * sizeof(T)), "cudaMalloc");
    owned_.push_back(p);
    return static_cast<T*>(p);
  }
  template <typename T>
  const T* upload(const std::vector<T>& values) {
    T* p = make<T>(values.size());
    check(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          "upload");
    return p;
  }

 private:
  std::vector<void*> owned_;
};

template <class S>
void pack_for(const StripEngine<S>*, std::vector<uint4>& out, const FoldedConv& c) {
  pack_conv(out, c);
}
template <class S>
void pack_for(const WarpgroupEngine<S>*, std::vector<uint4>& out, const FoldedConv& c) {
  pack_folded(out, c);
}

template <class Engine>
LayerList upload_layers(DeviceMemory& memory, const std::vector<const FoldedConv*>& convs) {
  std::vector<uint4> weights;
  std::vector<float> biases;
  for (const FoldedConv* c : convs) {
    pack_for(static_cast<const Engine*>(nullptr), weights, *c);
    biases.insert(biases.end(), c->bias.begin(), c->bias.end());
  }
  return {memory.upload(weights), memory.upload(biases), static_cast<int>(convs.size())};
}

Transition upload_transition(DeviceMemory& memory, const Block& block, int capacity) {
  Transition t;
  const FoldedConv padding = padding_shortcut(block.first.in);
  const FoldedConv& direct = block.shortcut.out > 0 ? block.shortcut : padding;
  std::vector<uint4> weights, shortcut;
  pack_conv(weights, block.first);
  pack_conv(shortcut, direct);
  t.weights = memory.upload(weights);
  t.shortcut = memory.upload(shortcut);
  t.bias = memory.upload(block.first.bias);
  t.shortcut_bias = memory.upload(direct.bias);
  const int side = 512 / block.first.out;  // 16 at 32 channels, 8 at 64
  const int64_t words = int64_t{capacity} * block.first.out / 2 * side * side;
  t.h = memory.make<uint32_t>(words);
  t.x = memory.make<uint32_t>(words);
  return t;
}

template <class Kernel>
void allow_memory(Kernel kernel, int bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "memory");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared),
        "carveout");
}

}  // namespace

FoldedConv padding_shortcut(int in) {
  FoldedConv c{in, 2 * in, 1, 2, std::vector<float>(2 * in * in), std::vector<float>(2 * in)};
  for (int i = 0; i < in; ++i) c.weight[i * in + i] = 1;
  return c;
}

struct Voter::State {
  DeviceMemory memory;
  int capacity = 0;
  Stem stem;
  LayerList layers[3];
  Transition next[2];
  Head head;
};

Voter::Voter(const FoldedResNet& net, int capacity) : state_(std::make_unique<State>()) {
  if (net.n < 1 || static_cast<int>(net.blocks.size()) != 3 * net.n || net.classes > kMaxClasses) {
    throw std::runtime_error("not a ResNet of three stages");
  }
  State& s = *state_;
  s.capacity = (capacity + Deep::kImages - 1) / Deep::kImages * Deep::kImages;
  s.stem.weights = s.memory.upload(pack_stem(net.stem));
  s.stem.bias = s.memory.upload(net.stem.bias);
  for (int c = 0; c < 3; ++c) {
    s.stem.mean[c] = net.mean[c];
    s.stem.scale[c] = 1 / net.sd[c];
  }
  for (int stage = 0; stage < 3; ++stage) {
    std::vector<const FoldedConv*> convs;
    for (int i = 0; i < net.n; ++i) {
      const Block& block = net.blocks[stage * net.n + i];
      if (stage == 0 || i > 0) convs.push_back(&block.first);
      convs.push_back(&block.second);
    }
    s.layers[stage] = stage == 0   ? upload_layers<WideEngine>(s.memory, convs)
                      : stage == 1 ? upload_layers<MiddleEngine>(s.memory, convs)
                                   : upload_layers<DeepEngine>(s.memory, convs);
    if (stage > 0) {
      s.next[stage - 1] = upload_transition(s.memory, net.blocks[stage * net.n], s.capacity);
    }
  }
  s.head.weights = s.memory.upload(net.linear);
  s.head.bias = s.memory.upload(net.linear_bias);
  s.head.classes = net.classes;
  allow_memory(wide_stage, 2 * Wide::kMaps);
  allow_memory(middle_stage, 2 * Middle::kMaps);
  allow_memory(deep_stage, 2 * Deep::kMaps);
}

Voter::~Voter() = default;

void Voter::enqueue(const Rows& rows, int* counts, float* logits, cudaStream_t stream, int stages) {
  State& s = *state_;
  if (rows.rows > s.capacity) throw std::runtime_error("too many rows");
  const auto cells = [](const uint32_t* words) { return reinterpret_cast<const uint4*>(words); };
  if (stages & 1) {
    wide_stage<<<rows.rows, Wide::kThreads, 2 * Wide::kMaps, stream>>>(rows, s.stem, s.layers[0],
                                                                       s.next[0]);
  }
  if (stages & 2) {
    const int blocks = (rows.rows + Middle::kImages - 1) / Middle::kImages;
    middle_stage<<<blocks, Middle::kThreads, 2 * Middle::kMaps, stream>>>(
        cells(s.next[0].h), cells(s.next[0].x), s.layers[1], s.next[1]);
  }
  if (stages & 4) {
    Head head = s.head;
    head.counts = counts;
    head.logits = logits;
    const int blocks = (rows.rows + Deep::kImages - 1) / Deep::kImages;
    deep_stage<<<blocks, Deep::kThreads, 2 * Deep::kMaps, stream>>>(
        cells(s.next[1].h), cells(s.next[1].x), s.layers[2], rows, head);
  }
  check(cudaGetLastError(), "launch");
}

}  // namespace resnet
