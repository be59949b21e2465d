#include "fedsmooth/engine/cuda/residual_weights.h"

#include <cuda_bf16.h>

namespace fedsmooth {
namespace {

uint32_t pair_of(float low, float high) {
  const auto bits = [](float value) -> uint32_t {
    return __bfloat16_as_ushort(__float2bfloat16(value));
  };
  return bits(low) | bits(high) << 16;
}

float weight_at(const PlannedConv& c, int out, int in, int dy, int dx) {
  return c.weight.floats()[((out * c.in + in) * c.kernel + dy) * c.kernel + dx];
}

// Packs the right factor [16, 16] of a product of a warp, whose entries are value(k, n).
template <class Value>
void pack_right(std::vector<uint4>& out, const Value& value) {
  for (int lane = 0; lane < 32; ++lane) {
    const int k = lane % 4 * 2, n = lane / 4;
    const auto pair = [&](int down, int across) {
      return pair_of(value(k + down, n + across), value(k + down + 1, n + across));
    };
    out.push_back({pair(0, 0), pair(8, 0), pair(0, 8), pair(8, 8)});
  }
}

// Packs a warp's part [16, 16] of the left factor of a product of a warpgroup, whose entries are
// value(m, k).
template <class Value>
void pack_left(std::vector<uint4>& out, const Value& value) {
  for (int lane = 0; lane < 32; ++lane) {
    const int m = lane / 4, k = lane % 4 * 2;
    const auto pair = [&](int down, int across) {
      return pair_of(value(m + down, k + across), value(m + down, k + across + 1));
    };
    out.push_back({pair(0, 0), pair(8, 0), pair(0, 8), pair(8, 8)});
  }
}

}  // namespace

// The depth of 16 is four pixels of four channels; the fourth pixel and channel have zero weights.
std::vector<uint4> pack_stem(const PlannedConv& c) {
  std::vector<uint4> out;
  for (int dy = 0; dy < 3; ++dy) {
    pack_right(out, [&](int k, int n) {
      const int dx = k / 4, channel = k % 4;
      return dx < 3 && channel < 3 ? weight_at(c, n, channel, dy, dx) : 0.0f;
    });
  }
  return out;
}

std::vector<uint4> pack_for_warp(const PlannedConv& c) {
  std::vector<uint4> out;
  for (int block = 0; block < c.out; block += 16) {
    for (int chunk = 0; chunk < c.in; chunk += 16) {
      for (int dx = 0; dx < c.kernel; ++dx) {
        for (int dy = 0; dy < c.kernel; ++dy) {
          pack_right(out, [&](int k, int n) { return weight_at(c, block + n, chunk + k, dy, dx); });
        }
      }
    }
  }
  return out;
}

std::vector<uint4> pack_for_warpgroup(const PlannedConv& c) {
  std::vector<uint4> out;
  for (int warp = 0; warp < 4; ++warp) {
    for (int dy = 0; dy < 3; ++dy) {
      for (int dx = 0; dx < 3; ++dx) {
        for (int chunk = 0; chunk < c.in; chunk += 16) {
          pack_left(out,
                    [&](int m, int k) { return weight_at(c, warp * 16 + m, chunk + k, dy, dx); });
        }
      }
    }
  }
  return out;
}

}  // namespace fedsmooth
