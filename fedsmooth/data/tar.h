// The regular files of a tar archive (POSIX ustar, and what GNU tar writes for short names). Only
// names and contents are taken: whoever unpacks decides where, so that no name leads elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct TarFile {
  std::string name;
  std::string_view bytes;  // within the archive
};

/// Returns the files; folders are skipped. A hard link, by which tar stores a second name of a
/// file, has the bytes of that file. Throws an Error that begins with `name` if a header's sum is
/// wrong, if the archive ends early, if a link does not lead to a file before it, or for symbolic
/// links and other special files.
std::vector<TarFile> list_tar(std::string_view archive, const std::string& name);

}  // namespace fedsmooth
