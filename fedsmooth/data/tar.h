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

<<<<<<< HEAD
/// A hard link, by which tar stores a second name of a file, has the bytes of that file. Folders
/// are passed over. Throws an Error that begins with `name` if a header's sum is wrong, if the
/// archive ends early, if a link does not lead to a file before it, or for symbolic links and other
/// special files.
=======
/// Returns the files; folders are skipped. Throws an Error that begins with `name` if a header's
/// checksum is wrong, if the archive ends early, or for links and other special files.
>>>>>>> 6b221cdb7ff4026701e86252b7f957262062f698
std::vector<TarFile> list_tar(std::string_view archive, const std::string& name);

}  // namespace fedsmooth
