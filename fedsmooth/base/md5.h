// MD5, only because the digests that publishers of data sets pin are of this kind. It finds a
// download that was cut or altered by chance; use SHA-256 (sha256.h) for everything else.
#pragma once

#include <string>
#include <string_view>

namespace fedsmooth {

/// The digest (RFC 1321) as 32 hexadecimal digits.
std::string md5(std::string_view bytes);

}  // namespace fedsmooth
