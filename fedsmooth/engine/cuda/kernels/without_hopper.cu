// Stands in for the kernels for Hopper in builds that are only for other architectures.
#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_product.h"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_wide.h"
#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"

namespace fedsmooth {
namespace {

constexpr cudaError_t kMissing = cudaErrorNoKernelImageForDevice;

}  // namespace

bool has_hopper_kernels() { return false; }

Tiling hopper_tiling(Side, int, int) { return {}; }
cudaError_t multiply_maps_hopper(const MapProduct&, cudaStream_t) { return kMissing; }
cudaError_t update_kernel_hopper(const WeightUpdate&, cudaStream_t) { return kMissing; }
bool is_wide(const MapProduct&) { return false; }
cudaError_t multiply_maps_wide(const MapProduct&, cudaStream_t) { return kMissing; }
cudaError_t make_first_layer(const FirstLayerRows&, cudaStream_t) { return kMissing; }
cudaError_t make_first_layer(const FirstLayerWave&, cudaStream_t) { return kMissing; }
cudaError_t convolve_wide_hopper(const RowConvolution&, cudaStream_t) { return kMissing; }
cudaError_t differentiate_wide_hopper(const RowGradient&, cudaStream_t) { return kMissing; }
cudaError_t count_residual_votes(const ResidualVotes&, cudaStream_t) { return kMissing; }

}  // namespace fedsmooth
