// The gradient of a kernel, as products over pixels: rows are channels of dy, columns are channels
// of x at the pixel that a tap reads. A thread block multiplies 64 channels of dy for each of its
// warpgroups with two column groups of 64, each of one tap, in steps of 64 pixels.
//
// Layers with few weights and many pixels are cut into pieces along the pixels, by the layer's
// shape and the client's rows alone; add_kernel() adds them up in order.
#pragma once

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_tiles.cuh"

namespace fedsmooth::wide {

constexpr int kGradientStages = 3, kGroups = 2;

template <int kWarpgroups>
constexpr int kGradientStage = (kWarpgroups + kGroups) * kTileBytes;
template <int kWarpgroups>
constexpr int kGradientBytes = kGradientStages* kGradientStage<kWarpgroups> + kAlignment;

struct GradientCut {
  int pieces = 1;
  int steps = 0;                         // of 64 pixels of a client, in all pieces
  int groups_of_tap = 0;                 // column groups of each tap
  int groups = 0, across = 0, down = 0;  // column groups; blocks for these, and for rows
};

inline int64_t pixels_of(const RowConvolution& forward) {
  return static_cast<int64_t>(forward.rows) * forward.out.pixels();
}

inline int pieces_of(const RowConvolution& forward) {
  constexpr int64_t kPixelsOfPiece = 8192;
  return static_cast<int>(std::max<int64_t>(1, pixels_of(forward) / kPixelsOfPiece));
}

inline int64_t kernel_values(const RowConvolution& forward) {
  return int64_t{forward.kernel} * forward.kernel * forward.in.channels * forward.out.channels;
}

inline GradientCut cut_gradient(const RowConvolution& forward, int warpgroups) {
  GradientCut cut;
  cut.pieces = pieces_of(forward);
  cut.steps = static_cast<int>((pixels_of(forward) + kDepth - 1) / kDepth);
  cut.groups_of_tap = (forward.in.channels + 63) / 64;
  cut.groups = forward.kernel * forward.kernel * cut.groups_of_tap;
  cut.across = (cut.groups + kGroups - 1) / kGroups;
  cut.down = (forward.out.channels + 64 * warpgroups - 1) / (64 * warpgroups);
  return cut;
}

// The channels of x at one tap that a column group holds.
struct ColumnGroup {
  int tap, channel;  // tap: -1 if there is no such group
  int y, x;          // of the tap, from the pixel at which the kernel begins

  __device__ ColumnGroup(const RowConvolution& c, const GradientCut& cut, int group) {
    tap = group < cut.groups ? group / cut.groups_of_tap : -1;
    channel = group % cut.groups_of_tap * 64;
    y = tap / c.kernel - c.padding;
    x = tap % c.kernel - c.padding;
  }
};

// Copies the tiles of one step after another. Eight threads copy the channels of a pixel.
template <int kWarpgroups>
class GradientCopies {
 public:
  __device__ GradientCopies(const RowGradient& g, const GradientCut& cut, int client, int row0,
                            const ColumnGroup (&groups)[kGroups])
      : c_(g.forward), groups_(groups), channel_(row0 + threadIdx.x % 8 * 8) {
    const int64_t rows = static_cast<int64_t>(client) * c_.rows;
    x_ = static_cast<const bf16*>(c_.x) + rows * c_.in.row_size() + threadIdx.x % 8 * 8;
    dy_ = static_cast<const bf16*>(g.dy) + rows * c_.out.row_size() + channel_;
    pixels_ = static_cast<int>(pixels_of_client());
    to_ = cell_at(threadIdx.x / 8, threadIdx.x % 8);
  }

  // Starts the copies of step s into a stage.
  __device__ void start(int s, uint32_t stage) const {
#pragma unroll
    for (int k = 0; k < kDepth / kRows; ++k) {
      const int p = s * kDepth + k * kRows + static_cast<int>(threadIdx.x) / 8;
      const bool real = p < pixels_;
      const int row = p / c_.out.pixels(), q = p % c_.out.pixels();
      const int y = q / c_.out.width * c_.stride, x = q % c_.out.width * c_.stride;
      const uint32_t to = stage + to_ + k * kRows * kRowBytes;
      const bf16* dy = dy_ + static_cast<int64_t>(p) * c_.out.channels;
#pragma unroll
      for (int w = 0; w < kWarpgroups; ++w) {
        const bool has = real && channel_ + 64 * w < c_.out.channels;
        copy_cell<false>(to + w * kTileBytes, has ? dy + 64 * w : x_, has);
      }
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        const ColumnGroup& group = groups_[i];
        const int line = y + group.y, column = x + group.x;
        const bool has = real && group.tap >= 0 && static_cast<unsigned>(line) < c_.in.height &&
                         static_cast<unsigned>(column) < c_.in.width &&
                         group.channel + static_cast<int>(threadIdx.x) % 8 * 8 < c_.in.channels;
        const int64_t pixel =
            static_cast<int64_t>(row) * c_.in.pixels() + line * c_.in.width + column;
        copy_cell<true>(to + (kWarpgroups + i) * kTileBytes,
                        has ? x_ + pixel * c_.in.channels + group.channel : x_, has);
      }
    }
  }

 private:
  static constexpr int kRows = 16 * kWarpgroups;  // pixels that are copied at the same time

  __device__ int64_t pixels_of_client() const {
    return static_cast<int64_t>(c_.rows) * c_.out.pixels();
  }

  const RowConvolution& c_;
  const ColumnGroup (&groups_)[kGroups];
  int channel_, pixels_, to_;
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
  const GradientCopies<kWarpgroups> copies(g, cut, client, row0, groups);
  for (int s = 0; s < kGradientStages - 1; ++s) {
    if (first + s < end) copies.start(first + s, stages + s * kStage);
    commit_copies();
  }
  Sums<kGroups> sums;
  for (int s = first; s < end; ++s) {
    wait_for_copies<kGradientStages - 2>();
    Products::before_barrier();
    __syncthreads();
    const uint32_t stage = stages + (s - first) % kGradientStages * kStage;
    Products::multiply_across(sums, stage + warpgroup * kTileBytes,
                              stage + kWarpgroups * kTileBytes);
    const int next = s + kGradientStages - 1;
    if (next < end) copies.start(next, stages + (next - first) % kGradientStages * kStage);
    commit_copies();
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

/// Adds up the pieces in RowGradient::room.
cudaError_t add_pieces(const RowGradient& g, int pieces, cudaStream_t stream);

template <class Products, int kWarpgroups>
cudaError_t launch_gradient(const RowGradient& g, cudaStream_t stream) {
  const GradientCut cut = cut_gradient(g.forward, kWarpgroups);
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
  return g.forward.out.channels > 64 ? launch_gradient<Products, 2>(g, stream)
                                     : launch_gradient<Products, 1>(g, stream);
}

}  // namespace fedsmooth::wide
