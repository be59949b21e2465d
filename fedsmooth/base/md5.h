// MD5, which is used only because publishers of data sets state digests of this kind. It detects a
// download that was cut or damaged by chance; use SHA-256 (sha256.h) for everything else.
#pragma once

#include <string>
#include <string_view>

namespace fedsmooth {

/// The digest (RFC 1321) as 32 hexadecimal digits.
std::string md5(std::string_view bytes);

}  // namespace fedsmooth
