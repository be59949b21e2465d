// A tensor in global memory that Hopper's bulk copies read, one box at a time.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace fedsmooth {

// A tensor [clients, items, rows, columns] of bfloat16, copied in boxes of box_rows x box_columns;
// box_columns is 64 or 32. `client_size` is the stride between clients, in values.
struct BoxedTensor {
  const void* data = nullptr;
  int columns = 0, rows = 0, items = 0, clients = 0;
  int64_t client_size = 0;
  int box_columns = 0, box_rows = 0;

  // Writes the tensor's description for copy_box() to `map`.
  cudaError_t encode(CUtensorMap& map) const {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                                12000, cudaEnableDefault, &result);
    if (status != cudaSuccess) return status;
    if (found == nullptr) return cudaErrorNotSupported;
    const auto u64 = [](int64_t value) { return static_cast<cuuint64_t>(value); };
    const cuuint64_t sizes[] = {u64(columns), u64(rows), u64(items), u64(clients)};
    const cuuint64_t strides[] = {u64(columns) * 2, u64(columns) * 2 * u64(rows),
                                  u64(client_size) * 2};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns),
                              static_cast<cuuint32_t>(box_rows), 1, 1};
    const cuuint32_t ones[] = {1, 1, 1, 1};
    const CUtensorMapSwizzle swizzle =
        box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B;
    const auto call = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
    const CUresult done =
        call(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(data), sizes, strides,
             box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return done == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
  }
};

}  // namespace fedsmooth
