#include "fedsmooth/engine/cpu/lane_tiles.h"

#include <algorithm>
#include <array>

#include "fedsmooth/base/matrix_product.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/lane_schemes.h"
#include "fedsmooth/engine/cpu/toeplitz_lanes.h"

namespace fedsmooth {
namespace {

constexpr int64_t kSide = Tile4::kSize.outputs, kWindow = Tile4::kSize.window,
                  kPlanes = Tile4::kSize.products * Tile4::kSize.products;
constexpr auto kOutputGradients = transposed(Tile4::kOutputs, false);

// Floats of a transformed kernel that stay in the second-level cache while tiles pass by.
constexpr int64_t kCachedKernel = 64 * 1024;

const SchemeMatrices& tile_scheme() {
  static const SchemeMatrices scheme = matrices_of<Tile4>();
  return scheme;
}

// From plane to plane: one line of the cache more than it has values, or all planes would compete
// for the same few lines.
int64_t plane_size(int64_t channels, int64_t width) { return channels * width + kToeplitzLanes; }

// Lanes that are taken through a tile together: all of them where each tile reads the kernel from
// afar, else as few as keep the tile's sums near.
int64_t lanes_together(const LaneConvolution& conv, Lanes lanes) {
  return kPlanes * conv.in[0] * conv.out[0] > kCachedKernel ? lanes.count : kToeplitzLanes;
}

// What a tile meets of a map: for each of its side x side pixels the offset of its first channel,
// or -1 outside the map; lanes [lane, lane + width) of `lanes`.
struct TilePart {
  int64_t channels, lanes, side, lane, width;
  std::array<int64_t, kWindow * kWindow> offset;

  TilePart(const Shape& map, Lanes of, int64_t top, int64_t left, int64_t pixels, int64_t first,
           int64_t some)
      : channels(map[0]), lanes(of.count), side(pixels), lane(first), width(some) {
    for (int64_t i = 0; i < side * side; ++i) {
      const int64_t row = top + i / side, column = left + i % side;
      const bool inside = row >= 0 && row < map[1] && column >= 0 && column < map[2];
      offset[i] = inside ? (row * map[2] + column) * channels * lanes + lane : -1;
    }
  }

  int64_t plane() const { return plane_size(channels, width); }
};

// Calls use(row, column, lane, width) for all tiles, by their first pixel, and lanes.
template <class Use>
void for_each_tile(const Shape& out, Lanes lanes, int64_t width, const Use& use) {
  for (int64_t y = 0; y < out[1]; y += kSide) {
    for (int64_t x = 0; x < out[2]; x += kSide) {
      for (int64_t lane = 0; lane < lanes.count; lane += width) {
        use(y, x, lane, std::min(width, lanes.count - lane));
      }
    }
  }
}

// out [planes, C, width] = matrix x matrix^T of the tile's pixels, zero outside the map.
template <const auto& kMatrix>
FEDSMOOTH_INLINE void gather_tile(const TilePart& part, const float* x, float* out) {
  for (int64_t c = 0; c < part.channels; ++c) {
    for (int64_t l = 0; l < part.width; l += kToeplitzLanes) {
      along_both_axes<kMatrix>(
          [&](int64_t i, int64_t j, ToeplitzLanes& to) FEDSMOOTH_INLINE_LAMBDA {
            const int64_t at = part.offset[i * std::ssize(kMatrix[0]) + j];
            to = ToeplitzLanes{};
            if (at >= 0) load_lanes(x + at + c * part.lanes + l, to);
          },
          [&](int64_t p, const ToeplitzLanes& sum) FEDSMOOTH_INLINE_LAMBDA {
            store_lanes(sum, out + p * part.plane() + c * part.width + l);
          });
    }
  }
}

FEDSMOOTH_VECTOR_CLONES
void tile_inputs(const TilePart& part, const float* x, float* sums) {
  gather_tile<Tile4::kInputs>(part, x, sums);
}

FEDSMOOTH_VECTOR_CLONES
void tile_output_gradients(const TilePart& part, const float* dy, float* sums) {
  gather_tile<kOutputGradients>(part, dy, sums);
}

// Products [planes, K, width] to the tile's pixels.
FEDSMOOTH_VECTOR_CLONES
void tile_outputs(const TilePart& part, const float* products, float* y) {
  for (int64_t k = 0; k < part.channels; ++k) {
    for (int64_t l = 0; l < part.width; l += kToeplitzLanes) {
      const float* from = products + k * part.width + l;
      along_both_axes<Tile4::kOutputs>(
          [&](int64_t p, int64_t q, ToeplitzLanes& to) FEDSMOOTH_INLINE_LAMBDA {
            load_lanes(from + (p * Tile4::kSize.products + q) * part.plane(), to);
          },
          [&](int64_t i, const ToeplitzLanes& sum) FEDSMOOTH_INLINE_LAMBDA {
            const int64_t at = part.offset[i];
            if (at >= 0) store_lanes(sum, y + at + k * part.lanes + l);
          });
    }
  }
}

using Eight = float __attribute__((vector_size(32)));
using Order = int __attribute__((vector_size(32)));

// out [8, 8] = x [8, 8] with rows as columns.
FEDSMOOTH_INLINE void turn_eight(const float* x, int64_t row, float* out, int64_t out_row) {
  constexpr Order kLow = {0, 8, 1, 9, 4, 12, 5, 13}, kHigh = {2, 10, 3, 11, 6, 14, 7, 15};
  constexpr Order kEven = {0, 1, 8, 9, 4, 5, 12, 13}, kOdd = {2, 3, 10, 11, 6, 7, 14, 15};
  constexpr Order kFirst = {0, 1, 2, 3, 8, 9, 10, 11}, kSecond = {4, 5, 6, 7, 12, 13, 14, 15};
  Eight a[8], b[8];
  for (int i = 0; i < 8; ++i) std::memcpy(&a[i], x + i * row, sizeof(Eight));
  for (int i = 0; i < 8; i += 2) {
    b[i] = __builtin_shuffle(a[i], a[i + 1], kLow);
    b[i + 1] = __builtin_shuffle(a[i], a[i + 1], kHigh);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      a[i + 2 * j] = __builtin_shuffle(b[i + j], b[i + j + 2], kEven);
      a[i + 2 * j + 1] = __builtin_shuffle(b[i + j], b[i + j + 2], kOdd);
    }
  }
  for (int i = 0; i < 4; ++i) {
    const Eight first = __builtin_shuffle(a[i], a[i + 4], kFirst);
    const Eight second = __builtin_shuffle(a[i], a[i + 4], kSecond);
    std::memcpy(out + i * out_row, &first, sizeof(Eight));
    std::memcpy(out + (i + 4) * out_row, &second, sizeof(Eight));
  }
}

// [rows, columns], multiples of eight, to [columns, rows].
FEDSMOOTH_VECTOR_CLONES
void turn(const float* x, int64_t rows, int64_t columns, float* out) {
  for (int64_t r = 0; r < rows; r += 8) {
    for (int64_t c = 0; c < columns; c += 8) {
      turn_eight(x + r * columns + c, columns, out + c * rows + r, rows);
    }
  }
}

// Maps `in` to maps `out` through a transformed kernel [planes, C, K], with zeros around them.
void convolve_tiles(const Shape& in, const Shape& out, int64_t padding, Lanes lanes, int64_t width,
                    const float* transformed, const float* x, float* y, LaneScratch& s) {
  const int64_t channels = in[0], outputs = out[0];
  float* sums = reserve(s.sums, kPlanes * plane_size(channels, width));
  float* products = reserve(s.products, kPlanes * plane_size(outputs, width));
  for_each_tile(out, lanes, width, [&](int64_t top, int64_t left, int64_t lane, int64_t some) {
    const TilePart from(in, lanes, top - padding, left - padding, kWindow, lane, some);
    const TilePart to(out, lanes, top, left, kSide, lane, some);
    tile_inputs(from, x, sums);
    for (int64_t p = 0; p < kPlanes; ++p) {
      multiply({outputs, channels, some, transformed + p * channels * outputs, 1, outputs,
                sums + p * from.plane(), some, products + p * to.plane(), some});
    }
    tile_outputs(to, products, y);
  });
}

}  // namespace

bool fits_tiles(const LaneConvolution& conv) {
  return conv.kernel == 3 && conv.stride == 1 && conv.padding <= 2 && conv.out[0] % 16 == 0;
}

void convolve_by_tiles(const LaneConvolution& conv, Lanes lanes, const float* kernel,
                       const float* x, float* y, bool fresh, LaneScratch& scratch) {
  const int64_t size = conv.in[0] * conv.out[0];
  float* transformed = reserve(scratch.transformed, kPlanes * size);
  if (fresh) transform(tile_scheme().kernel, false, kernel, size, scratch.rows, transformed);
  convolve_tiles(conv.in, conv.out, conv.padding, lanes, lanes_together(conv, lanes), transformed,
                 x, y, scratch);
}

void convolve_gradient_by_tiles(const LaneConvolution& conv, Lanes lanes, const float* kernel,
                                const float* dy, float* dx, LaneScratch& scratch) {
  const int64_t channels = conv.in[0], outputs = conv.out[0], size = channels * outputs;
  std::vector<float> around(9 * size), transformed(kPlanes * size);  // [3, 3, K, C], [planes, K, C]
  for (int64_t tap = 0; tap < 9; ++tap) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t k = 0; k < outputs; ++k) {
        around[(8 - tap) * size + k * channels + c] = kernel[tap * size + c * outputs + k];
      }
    }
  }
  transform(tile_scheme().kernel, false, around.data(), size, scratch.rows, transformed.data());
  convolve_tiles(conv.out, conv.in, 2 - conv.padding, lanes, lanes_together(conv, lanes),
                 transformed.data(), dy, dx, scratch);
}

std::vector<float> kernel_gradient_by_tiles(const LaneConvolution& conv, Lanes lanes,
                                            const float* x, const float* dy, LaneScratch& scratch) {
  const int64_t channels = conv.in[0], outputs = conv.out[0], size = channels * outputs;
  const int64_t width = lanes_together(conv, lanes);
  float* sums = reserve(scratch.sums, kPlanes * plane_size(channels, width));
  float* gradients = reserve(scratch.products, (kPlanes + 1) * plane_size(outputs, width));
  float* turned = gradients + kPlanes * plane_size(outputs, width);  // of one plane
  std::vector<float> products(kPlanes * size);
  for_each_tile(conv.out, lanes, width, [&](int64_t y, int64_t z, int64_t lane, int64_t some) {
    const TilePart of_x(conv.in, lanes, y - conv.padding, z - conv.padding, kWindow, lane, some);
    const TilePart of_dy(conv.out, lanes, y, z, kSide, lane, some);
    tile_inputs(of_x, x, sums);
    tile_output_gradients(of_dy, dy, gradients);
    const int64_t images = std::min(some, lanes.batch - lane);
    for (int64_t p = 0; p < kPlanes && images > 0; ++p) {
      turn(gradients + p * of_dy.plane(), outputs, some, turned);
      multiply({channels, images, outputs, sums + p * of_x.plane(), some, 1, turned, outputs,
                products.data() + p * size, outputs, /*add=*/true});
    }
  });
  std::vector<float> gradient(9 * size);
  transform(tile_scheme().kernel, true, products.data(), size, scratch.rows, gradient.data());
  return gradient;
}

}  // namespace fedsmooth
