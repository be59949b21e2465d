// Lists the regular files of a tar archive (POSIX ustar, and GNU tar's form for short names). It
// returns only names and contents; the caller decides where to write them, so that no name in the
// archive leads outside a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct TarFile {
  std::string name;
  std::string_view bytes;  // within the archive
};

/// An Error, which begins with `name`, if a header's sum is wrong, if the archive ends early, or
/// for links and other special files. Folders are passed over.
std::vector<TarFile> list_tar(std::string_view archive, const std::string& name);

}  // namespace fedsmooth
