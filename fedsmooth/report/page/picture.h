// Images inside a page: small PNGs as data: addresses, so that nothing is loaded from elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// Bytes [1 or 3, H, W] as the value of an <img>'s src.
std::string picture_address(const Array& image);

/// The image with a draw of Gaussian noise, number `draw`, values cut to what a screen can show.
Array with_noise(const Array& image, double sigma, uint32_t draw);

/// RFC 4648.
std::string base64(std::string_view bytes);

}  // namespace fedsmooth
