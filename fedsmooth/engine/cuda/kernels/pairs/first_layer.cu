#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"

#ifdef FEDSMOOTH_HOPPER
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_first_layer.h"
#endif

namespace fedsmooth {

namespace {

template <class Layer>
cudaError_t make_on_hopper([[maybe_unused]] const Layer& layer,
                           [[maybe_unused]] cudaStream_t stream) {
#ifdef FEDSMOOTH_HOPPER
  return make_first_layer_hopper(layer, stream);
#else
  return cudaErrorNoKernelImageForDevice;
#endif
}

}  // namespace

cudaError_t make_first_layer(const FirstLayerRows& layer, cudaStream_t stream) {
  return make_on_hopper(layer, stream);
}

cudaError_t make_first_layer(const FirstLayerWave& layer, cudaStream_t stream) {
  return make_on_hopper(layer, stream);
}

}  // namespace fedsmooth
