// The gradient of a kernel, as a matrix product over pixels: rows are channels of dy, columns are
// channels of x at the pixel that a tap reads. A thread block computes 64 rows for each of its
// warpgroups and two column groups, each of 64 channels at one tap, in steps of 64 pixels.
//
// A client's pixels may be cut into pieces, so that layers with few weights fill the GPU too. The
// number of pieces depends only on the layer's shape and the client's number of rows, and
// add_pieces() adds them up in order.
#pragma once

#include <algorithm>

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_tiles.cuh"

namespace fedsmooth::wide {

constexpr int kGradientStages = 3, kGroups = 2;

template <int kWarpgroups>
constexpr int kGradientStage = (kWarpgroups + kGroups) * kTileBytes;
template <int kWarpgroups>
constexpr int kGradientBytes = kGradientStages* kGradientStage<kWarpgroups> + kAlignment;

static_assert(kGradientBytes<2> <= 99 * 1024);  // see wide_convolution.cuh

struct GradientCut {
  int pieces = 1;
  int steps = 0;             // steps of 64 pixels of a client, in all pieces
  int groups_of_tap = 0;     // column groups of each tap
  int groups = 0;            // column groups
  int across = 0, down = 0;  // blocks for all column groups, and for all channels of dy
};

inline int64_t pixels_of(const RowConvolution& forward) {
  return static_cast<int64_t>(forward.rows) * forward.out.pixels();
}

inline int64_t kernel_values(const RowConvolution& forward) {
  return int64_t{forward.kernel} * forward.kernel * forward.in.channels * forward.out.channels;
}

/// Returns the number of warpgroups of a block. Each computes 64 channels of dy.
inline int warpgroups_for(const RowConvolution& forward) {
  return forward.out.channels > 64 ? 2 : 1;
}

// A client with many rows is taken to be alone on the GPU. Its pieces fill at most two rounds of
// blocks on an H200, where each of the 132 multiprocessors holds two blocks of two warpgroups or
// three of one. Clients with few rows fill the GPU together.
inline GradientCut cut_gradient(const RowConvolution& forward) {
  constexpr int kManyRows = 256, kLeastPixels = 1024, kPixelsOfPiece = 8192;
  const int warpgroups = warpgroups_for(forward), blocks = warpgroups == 2 ? 528 : 792;
  GradientCut cut;
  cut.steps = static_cast<int>((pixels_of(forward) + kDepth - 1) / kDepth);
  cut.groups_of_tap = (forward.in.channels + 63) / 64;
  cut.groups = forward.kernel * forward.kernel * cut.groups_of_tap;
  cut.across = (cut.groups + kGroups - 1) / kGroups;
  cut.down = (forward.out.channels + 64 * warpgroups - 1) / (64 * warpgroups);
  const int64_t most =
      forward.rows >= kManyRows
          ? std::min<int64_t>(blocks / (cut.across * cut.down), pixels_of(forward) / kLeastPixels)
          : pixels_of(forward) / kPixelsOfPiece;
  cut.pieces = static_cast<int>(std::max<int64_t>(1, most));
  return cut;
}

// The channels of x at one tap that a column group holds.
struct ColumnGroup {
  int tap, channel;  // tap: -1 if there is no such group
  int y, x;          // what the tap's coordinates in x add to the pixel of dy times the stride

  __device__ ColumnGroup(const RowConvolution& c, const GradientCut& cut, int group) {
    tap = group < cut.groups ? group / cut.groups_of_tap : -1;
    channel = group % cut.groups_of_tap * 64;
    y = tap / c.kernel - c.padding;
    x = tap % c.kernel - c.padding;
  }
};

// A pixel of a client that moves by kDepth pixels at a time, without divisions.
struct MovingPixel {
  int row, y, x;

  MovingPixel() = default;
  __device__ MovingPixel(const MapShape& map, int64_t p) {
    const auto in_row = static_cast<int>(p % map.pixels());
    row = static_cast<int>(p / map.pixels());
    y = in_row / map.width;
    x = in_row % map.width;
  }

  // `by` is pixel kDepth of the client.
  __device__ void move(const MapShape& map, const MovingPixel& by) {
    x += by.x;
    const bool next_line = x >= map.width;
    if (next_line) x -= map.width;
    y += by.y + next_line;
    const bool next_row = y >= map.height;
    if (next_row) y -= map.height;
    row += by.row + next_row;
  }
};

// Copies the tiles of dy and x step by step. Eight threads copy 64 channels of a pixel.
template <int kWarpgroups>
class GradientCopies {
 public:
  __device__ GradientCopies(const RowGradient& g, int client, int row0, int first,
                            const ColumnGroup (&groups)[kGroups])
      : c_(g.forward), by_(c_.out, kDepth) {
    const int64_t rows = static_cast<int64_t>(client) * c_.rows;
    const int cell = threadIdx.x % 8 * 8;
    x_ = static_cast<const bf16*>(c_.x) + rows * c_.in.row_size() + cell;
    rows_left_ = c_.out.channels - row0 - cell;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      y0_[i] = groups[i].y;
      x0_[i] = groups[i].x;
      const bool real = groups[i].tap >= 0 && groups[i].channel + cell < c_.in.channels;
      height_[i] = real ? c_.in.height : 0;
      offset_[i] = (groups[i].y * c_.in.width + groups[i].x) * c_.in.channels + groups[i].channel;
    }
    const int64_t pixel = static_cast<int64_t>(first) * kDepth + threadIdx.x / 8;
#pragma unroll
    for (int k = 0; k < kPixels; ++k) at_[k] = MovingPixel(c_.out, pixel + k * kRows);
    dy_ = static_cast<const bf16*>(g.dy) + rows * c_.out.row_size() + row0 + cell +
          pixel * c_.out.channels;
    to_ = cell_at(threadIdx.x / 8, threadIdx.x % 8);
  }

  // Starts copying the next step's tiles into a stage.
  __device__ void start(uint32_t stage) {
#pragma unroll
    for (int k = 0; k < kPixels; ++k) {
      MovingPixel& at = at_[k];
      const bool real = at.row < c_.rows;
      const uint32_t to = stage + to_ + k * kRows * kRowBytes;
      const bf16* dy = dy_ + static_cast<int64_t>(k * kRows) * c_.out.channels;
#pragma unroll
      for (int w = 0; w < kWarpgroups; ++w) {
        copy_cell<false>(to + w * kTileBytes, dy + 64 * w, real && 64 * w < rows_left_);
      }
      const int y = at.y * c_.stride, x = at.x * c_.stride;
      const bf16* from =
          x_ +
          (static_cast<int64_t>(at.row) * c_.in.pixels() + y * c_.in.width + x) * c_.in.channels;
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        const bool inside = static_cast<unsigned>(y + y0_[i]) < static_cast<unsigned>(height_[i]) &&
                            static_cast<unsigned>(x + x0_[i]) < static_cast<unsigned>(c_.in.width);
        copy_cell<true>(to + (kWarpgroups + i) * kTileBytes, from + offset_[i], real && inside);
      }
      at.move(c_.out, by_);
    }
    dy_ += static_cast<int64_t>(kDepth) * c_.out.channels;
  }

 private:
  static constexpr int kRows = 16 * kWarpgroups;  // pixels that are copied at the same time
  static constexpr int kPixels = kDepth / kRows;  // pixels of a thread

  const RowConvolution& c_;
  MovingPixel by_;
  MovingPixel at_[kPixels];
  int y0_[kGroups], x0_[kGroups], height_[kGroups], offset_[kGroups];
  int rows_left_, to_;
  const bf16 *x_, *dy_;
};

template <class Products, int kWarpgroups>
__global__ void __launch_bounds__(128 * kWarpgroups, kWarpgroups == 2 ? 2 : 3)
    gradient_kernel(const __grid_constant__ RowGradient g,
                    const __grid_constant__ GradientCut cut) {
  constexpr int kStage = kGradientStage<kWarpgroups>;
  const uint32_t stages = shared_address(aligned_tiles());
  const int client = blockIdx.y, warpgroup = threadIdx.x / 128;
  const int piece = blockIdx.x / (cut.across * cut.down),
            tile = blockIdx.x % (cut.across * cut.down);
  const int row0 = tile % cut.down * 64 * kWarpgroups, group0 = tile / cut.down * kGroups;
  const int first = static_cast<int>(static_cast<int64_t>(cut.steps) * piece / cut.pieces);
  const int end = static_cast<int>(static_cast<int64_t>(cut.steps) * (piece + 1) / cut.pieces);
  const ColumnGroup groups[kGroups] = {{g.forward, cut, group0}, {g.forward, cut, group0 + 1}};
  wait_for_earlier_kernels();
  GradientCopies<kWarpgroups> copies(g, client, row0, first, groups);
  for (int s = 0; s < kGradientStages - 1; ++s) {
    if (first + s < end) copies.start(stages + s * kStage);
    commit_copies();
  }
  Sums<kGroups> sums;
  uint32_t stage = stages, before = stages + (kGradientStages - 1) * kStage;
  for (int s = first; s < end; ++s) {
    wait_for_copies<kGradientStages - 2>();
    Products::before_barrier();
    __syncthreads();
    Products::multiply_across(sums, stage + warpgroup * kTileBytes,
                              stage + kWarpgroups * kTileBytes);
    if (s + kGradientStages - 1 < end) copies.start(before);
    commit_copies();
    before = stage;
    stage = stage == stages + (kGradientStages - 1) * kStage ? stages : stage + kStage;
  }
  Products::finish();
  wait_for_copies<0>();
  const int in = g.forward.in.channels, out = g.forward.out.channels;
  const int64_t size = static_cast<int64_t>(g.forward.kernel) * g.forward.kernel * in * out;
  float* to = cut.pieces == 1 ? g.gradient + client * g.gradient_client
                              : g.room + (static_cast<int64_t>(client) * cut.pieces + piece) * size;
  for_each_sum(sums, [&](int row, int column, float low, float high) {
    const ColumnGroup& group = groups[column / 64];
    const int k = row0 + warpgroup * 64 + row, channel = group.channel + column % 64;
    if (group.tap < 0 || k >= out || channel >= in) return;
    *reinterpret_cast<float2*>(to + (static_cast<int64_t>(group.tap) * out + k) * in + channel) =
        make_float2(low, high);
  });
}

/// Adds up the pieces in RowGradient::room, into RowGradient::gradient.
cudaError_t add_pieces(const RowGradient& g, int pieces, cudaStream_t stream);

template <class Products, int kWarpgroups>
cudaError_t launch_gradient(const RowGradient& g, cudaStream_t stream) {
  const GradientCut cut = cut_gradient(g.forward);
  const auto kernel = gradient_kernel<Products, kWarpgroups>;
  cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            kGradientBytes<kWarpgroups>);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>(cut.across) * cut.down * cut.pieces, g.forward.clients);
  status = launch_dependent(kernel, grid, 128 * kWarpgroups, kGradientBytes<kWarpgroups>, stream, g,
                            cut);
  if (status != cudaSuccess || cut.pieces == 1) return status;
  return add_pieces(g, cut.pieces, stream);
}

template <class Products>
cudaError_t launch_gradient(const RowGradient& g, cudaStream_t stream) {
  return warpgroups_for(g.forward) == 2 ? launch_gradient<Products, 2>(g, stream)
                                        : launch_gradient<Products, 1>(g, stream);
}

}  // namespace fedsmooth::wide
