#include "fedsmooth/engine/cuda/kernels/first_layer.h"

#ifdef FEDSMOOTH_HOPPER
#include "fedsmooth/engine/cuda/kernels/hopper_first_layer.h"
#endif

namespace fedsmooth {

cudaError_t make_first_layer([[maybe_unused]] const FirstLayerRows& layer,
                             [[maybe_unused]] cudaStream_t stream) {
#ifdef FEDSMOOTH_HOPPER
  return make_first_layer_hopper(layer, stream);
#else
  return cudaErrorNoKernelImageForDevice;
#endif
}

}  // namespace fedsmooth
