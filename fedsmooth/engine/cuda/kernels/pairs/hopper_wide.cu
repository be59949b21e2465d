#include "fedsmooth/engine/cuda/kernels/pairs/hopper_wide.h"

#include <algorithm>

#include "fedsmooth/engine/cuda/kernels/pairs/hopper_wide_maps.cuh"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_wide_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/boxed_tensor.h"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"

namespace fedsmooth {
namespace {

// Two warpgroups compute products, and a third one copies tiles. Two blocks with neighbouring rows
// are a cluster.
constexpr int kReadingWarps = kReaders * 4, kBlockThreads = (kReaders + 1) * 128;
constexpr int kReaderRegisters = 232, kCopierRegisters = 40;
constexpr int kPeers = 2;
constexpr int kDepth = 32, kTile = 64 * kDepth * 2;  // depth of a piece, bytes of its 64 rows

constexpr int kMostStages = 16, kMostSlots = 20, kAllSteps = 96, kLeftStages = 3;
constexpr int kMemory = 227 * 1024 - 1536;  // the rest is for barriers and steps

// Left tiles are [stage, pixel]; a stage has one piece of the depth. If there are as many stages as
// pieces, left tiles are copied once and stay; otherwise stages are a ring. Slots are a ring for
// the tiles of a tap.
struct WideOperands {
  CUtensorMap left, right;
  DevicePairs pairs;
  int pieces = 0, pixels = 0;
  int stages = 0, slots = 0;

  __device__ bool lefts_stay() const { return stages == pieces; }
};

struct WideMemory {
  uint64_t left_arrived[kMostStages], left_read[kLeftStages];
  uint64_t right_arrived[kMostSlots], right_read[kMostSlots];
  int2 steps[kAllSteps];
};

// A position in a ring, and how often it has gone round.
struct Ring {
  int size, at = 0;
  uint32_t rounds = 0;

  __device__ void advance() {
    if (++at < size) return;
    at = 0;
    ++rounds;
  }
};

// The parts that a block computes. A part is a square of results at kTiles * 64 columns.
struct Parts {
  int client, row0, squares, first, end;

  __device__ explicit Parts(const MapProduct& p, int columns)
      : client(blockIdx.z), row0(blockIdx.x * 64), squares(p.pairs.results / 4) {
    const int all = squares * (p.columns / columns);
    first = all * blockIdx.y / gridDim.y;
    end = all * (blockIdx.y + 1) / gridDim.y;
  }
};

// Calls each(first, count) for a square's steps in each chunk.
template <class Each>
__device__ void each_chunk(const DevicePairs& pairs, int square, const Each& each) {
  const int squares = pairs.tiling.results / 4, group = square / squares;
  const int last = pairs.chunk_first[group + 1];
  for (int chunk = pairs.chunk_first[group]; chunk < last; ++chunk) {
    const int* first = pairs.step_first + chunk * squares + square % squares;
    each(first[0], first[1] - first[0]);
  }
}

// The warp that copies tiles. The two blocks of a cluster take turns with the taps, each of which
// is copied to both.
template <int kTiles>
struct Copier {
  const WideOperands& o;
  const Parts& parts;
  WideMemory& m;
  uint32_t lefts, rights;
  Ring left, right;
  int turn = 0;

  __device__ void copy_part(int part) {
    const int column0 = part / parts.squares * kTiles * 64;
    each_chunk(o.pairs, part % parts.squares, [&](int first, int count) {
      for (int piece = 0; piece < o.pieces; ++piece) {
        if (!o.lefts_stay() || left.rounds == 0) copy_lefts(piece);
        left.advance();
        for (int i = 0; i < count; ++i) copy_tap(m.steps[first + i].y, piece, column0);
      }
    });
  }

  __device__ void copy_lefts(int piece) {
    const int lane = threadIdx.x % 32;
    const uint32_t arrived = shared_address(m.left_arrived + left.at);
    if (!o.lefts_stay()) {
      wait_for_phase(shared_address(m.left_read + left.at), (left.rounds + 1) % 2);
    }
    if (lane == 0) expect_bytes(arrived, o.pixels * kTile);
    __syncwarp();
    for (int pixel = lane; pixel < o.pixels; pixel += 32) {
      copy_box(lefts + (left.at * o.pixels + pixel) * kTile, o.left, arrived, piece * kDepth,
               parts.row0, pixel, parts.client);
    }
  }

  __device__ void copy_tap(int tap, int piece, int column0) {
    const int lane = threadIdx.x % 32;
    const uint32_t arrived = shared_address(m.right_arrived + right.at);
    wait_for_phase(shared_address(m.right_read + right.at), (right.rounds + 1) % 2);
    if (lane == 0) expect_bytes(arrived, kTiles * kTile);
    __syncwarp();
    if (turn == rank_in_cluster() && lane < kTiles) {
      copy_box_to_all(rights + (right.at * kTiles + lane) * kTile, o.right, arrived,
                      column0 + lane * 64, piece * kDepth, tap, parts.client, kPeers);
    }
    turn ^= 1;
    right.advance();
  }
};

// A warpgroup that computes products. While it prepares a step's products, those of kAhead earlier
// steps run; narrow products need more steps ahead, because they end sooner.
template <int kTiles>
struct Reader {
  static constexpr int kAhead = kTiles == 2 ? 2 : 1;
  static_assert(kAhead < kFewestSteps);  // so a stage is released before the next one is read
  const WideOperands& o;
  WideMemory& m;
  uint32_t lefts, rights;
  int number;
  uint32_t read_by_all;    // address of right_read in this block or in the other, by lane
  Ring left, right, read;  // `read` is at the slot that is released next

  __device__ void sum(int square, WideSums<kTiles>& sums) {
    int taken = 0, given = 0;            // number of steps started, and of those released
    int read_stage = -1, stage_end = 0;  // stage to release (-1: none), and after how many steps
    const int lane = threadIdx.x % 32;
    const auto give_back = [&] {
      if (lane < kPeers) show_read(read_by_all + read.at * 8);
      read.advance();
      if (++given < stage_end || read_stage < 0) return;
      if (lane == 0) arrive(shared_address(m.left_read + read_stage));
      read_stage = -1;
    };
    each_chunk(o.pairs, square, [&](int first, int count) {
      // Lane i has the left sides of step i. A step's are fetched one step ahead.
      const int lefts_of_lane = lane < count ? own_lefts(m.steps[first + lane].x) : 0;
      int step = uniform(lefts_of_lane);
      for (int piece = 0; piece < o.pieces; ++piece) {
        wait_for_phase(shared_address(m.left_arrived + left.at),
                       o.lefts_stay() ? 0 : left.rounds % 2);
        for (int i = 0; i < count; ++i) {
          wait_for_phase(shared_address(m.right_arrived + right.at), right.rounds % 2);
          add_step(step, sums);
          step = __shfl_sync(~0u, lefts_of_lane, i + 1 < count ? i + 1 : 0);
          right.advance();
          wait_for_products<kAhead>();
          if (++taken > kAhead) give_back();
        }
        if (!o.lefts_stay()) {
          read_stage = left.at;
          stage_end = taken;
        }
        left.advance();
      }
    });
    wait_for_products<0>();
#pragma unroll 1
    while (given < taken) give_back();
  }

  // Returns the left sides of this warpgroup's two results in a step, one in each byte.
  __device__ int own_lefts(int step) const {
    return (step >> 8 * result_of(number, 0) & 0xFF) | (step >> 8 * result_of(number, 1) & 0xFF)
                                                           << 8;
  }

  // Starts a step's products. Each path commits its own group, because the compiler would make two
  // groups of one that spans branches.
  __device__ void add_step(int step, WideSums<kTiles>& sums) const {
    const int first = step & 0xFF, second = step >> 8;
    if (first != kNoLeft && second != kNoLeft) {
      begin_products();
      multiply(sums[0], first);
      multiply(sums[1], second);
      commit_products();
    } else if (first != kNoLeft) {
      begin_products();
      multiply(sums[0], first);
      commit_products();
    } else if (second != kNoLeft) {
      begin_products();
      multiply(sums[1], second);
      commit_products();
    } else {
      begin_products();
      commit_products();
    }
  }

  __device__ void multiply(float (&sums)[kTiles][32], int pixel) const {
    const uint64_t a = describe_tile<kDepth * 2>(lefts + (left.at * o.pixels + pixel) * kTile);
    const uint64_t b = describe_tile<128>(rights + right.at * kTiles * kTile, kTile);
#pragma unroll
    for (int d = 0; d < kDepth / 16; ++d) multiply_wide(sums, a + d * 2, b + d * 128);
  }
};

template <int kTiles>
__global__ void __launch_bounds__(kBlockThreads, 1)
    wide_kernel(const __grid_constant__ WideOperands o, const __grid_constant__ MapProduct p) {
  __shared__ WideMemory m;
  uint8_t* out = aligned_memory();
  const uint32_t lefts = shared_address(out) + kOutBytes;
  const uint32_t rights = lefts + o.stages * o.pixels * kTile;
  if (threadIdx.x == 0) {
    for (int i = 0; i < o.stages; ++i) init_barrier(shared_address(m.left_arrived + i));
    for (int i = 0; i < kLeftStages; ++i) {
      init_barrier(shared_address(m.left_read + i), kReadingWarps);
    }
    for (int i = 0; i < o.slots; ++i) {
      init_barrier(shared_address(m.right_arrived + i));
      init_barrier(shared_address(m.right_read + i), kPeers * kReadingWarps);
    }
    show_barriers_to_copies();
  }
  for (int i = threadIdx.x; i < o.pairs.step_count; i += kBlockThreads) {
    m.steps[i] = o.pairs.steps[i];
  }
  sync_cluster();
  const Parts parts(p, kTiles * 64);
  const int warpgroup = uniform(threadIdx.x / 128);
  if (warpgroup == kReaders) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCopierRegisters));
    Copier<kTiles> copier{o, parts, m, lefts, rights, Ring{o.stages}, Ring{o.slots}};
    const bool copies = uniform(threadIdx.x / 32) == kReadingWarps;
    for (int part = parts.first; copies && part < parts.end; ++part) copier.copy_part(part);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kReaderRegisters));
    const uint32_t read = address_in_peer(shared_address(m.right_read), threadIdx.x % kPeers);
    Reader<kTiles> reader{
        o, m, lefts, rights, warpgroup, read, Ring{o.stages}, Ring{o.slots}, Ring{o.slots}};
    for (int part = parts.first; part < parts.end; ++part) {
      const int square = part % parts.squares;
      WideSums<kTiles> sums = {};
      reader.sum(square, sums);
      write_part<kTiles>(p, {parts.client, square, parts.row0, part / parts.squares * kTiles * 64},
                         warpgroup, sums, reinterpret_cast<bf16*>(out));
    }
  }
  sync_cluster();  // a block must not end while the other may arrive at its barriers
}

constexpr int kFewSlots = 4;  // with fewer, copies would not be ahead of the products

// Divides shared memory between stages and slots. Returns whether there is enough.
bool share_memory(const MapProduct& p, int tiles, WideOperands& o) {
  constexpr int kRoom = kMemory - 1024 - kOutBytes;
  const auto slots_beside = [&](int stages) {
    const int slots = (kRoom - stages * p.left_pixels * kTile) / (tiles * kTile);
    return stages > kMostStages ? 0 : std::min(slots, kMostSlots);
  };
  o.pixels = p.left_pixels;
  o.pieces = (p.depth + kDepth - 1) / kDepth;
  o.stages = slots_beside(o.pieces) >= kFewSlots ? o.pieces : kLeftStages;
  o.slots = slots_beside(o.stages);
  return o.slots >= kFewSlots;
}

// Returns the number of tiles of 64 columns that a warpgroup computes at once; 0: the columns are
// no multiple of two or three tiles.
int tiles_of(const MapProduct& p) {
  return p.columns % 192 == 0 ? 3 : p.columns % 128 == 0 ? 2 : 0;
}

template <int kTiles>
cudaError_t launch_wide(const MapProduct& p, cudaStream_t stream) {
  WideOperands o;
  if (!share_memory(p, kTiles, o)) return cudaErrorNotSupported;
  o.pairs = p.pairs;
  const int64_t left_size = static_cast<int64_t>(p.left_pixels) * p.rows * p.depth;
  const BoxedTensor left{p.left, p.depth, p.rows, p.left_pixels, p.clients, left_size, kDepth, 64};
  const BoxedTensor right{p.kernel,  p.columns,       p.depth, p.taps,
                          p.clients, p.kernel_client, 64,      kDepth};
  cudaError_t status = left.encode(o.left);
  if (status == cudaSuccess) status = right.encode(o.right);
  if (status == cudaSuccess) {
    status = cudaFuncSetAttribute(wide_kernel<kTiles>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kMemory);
  }
  if (status != cudaSuccess) return status;
  // If there are too few rows for all multiprocessors, several blocks share the parts.
  const int rows = p.rows / 64, parts = p.pairs.results / 4 * (p.columns / (kTiles * 64));
  const int shares = std::clamp(multiprocessors() / (rows * p.clients), 1, parts);
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kPeers;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(rows, shares, p.clients);
  config.blockDim = kBlockThreads;
  config.dynamicSmemBytes = 1024 + kOutBytes + (o.stages * o.pixels + o.slots * kTiles) * kTile;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, wide_kernel<kTiles>, o, p);
}

}  // namespace

bool is_wide(const MapProduct& p) {
  WideOperands o;
  const bool map = !p.gradient && p.relu && p.bias != nullptr && p.mask == nullptr &&
                   p.out_float == nullptr && p.choice == nullptr;
  return map && p.rows % (64 * kPeers) == 0 && tiles_of(p) > 0 && p.pairs.step_count > 0 &&
         p.pairs.step_count <= kAllSteps && share_memory(p, tiles_of(p), o);
}

cudaError_t multiply_maps_wide(const MapProduct& p, cudaStream_t stream) {
  return tiles_of(p) == 3 ? launch_wide<3>(p, stream) : launch_wide<2>(p, stream);
}

}  // namespace fedsmooth
