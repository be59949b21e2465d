// A marker for functions that g++ compiles for the CPU and nvcc for both CPU and GPU.
#pragma once

#ifdef __CUDACC__
#define FEDSMOOTH_HOST_DEVICE __host__ __device__
#else
#define FEDSMOOTH_HOST_DEVICE
#endif
