// The shape of a map on the GPU, whatever its layout.
#pragma once

#include <cstdint>

#include "fedsmooth/base/host_device.h"

namespace fedsmooth {

struct MapShape {
  int height = 0, width = 0, channels = 0;  // channels include those that fill up

  FEDSMOOTH_HOST_DEVICE int pixels() const { return height * width; }
  FEDSMOOTH_HOST_DEVICE int64_t row_size() const { return int64_t{pixels()} * channels; }
  bool operator==(const MapShape& other) const {
    return height == other.height && width == other.width && channels == other.channels;
  }
};

}  // namespace fedsmooth
