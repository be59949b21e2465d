// Data sets that `fedsmooth data` gets: where they are published, the digests of their archives,
// and what is in them. One row per data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct PublicArchive {
  std::string name;  // NAME.tar.gz, or FILE.gz for one file
  std::string md5;
};

struct PublicSet {
  std::string name;                    // `fedsmooth data NAME`
  std::string source;                  // data.name that reads it
  std::string folder;                  // its name below FetchArguments::out
  std::vector<std::string> addresses;  // of folders, tried in this order
  std::vector<PublicArchive> archives;
  std::vector<std::string> files;  // all files that `folder` gets
};

const std::vector<PublicSet>& public_sets();

/// Returns the command that puts the data set called `name` below `root`.
std::string data_command(const std::string& name, const std::filesystem::path& root);

/// The most bytes of an archive, packed or not. CIFAR's have 185 MB unpacked.
inline constexpr int64_t kLargestArchive = int64_t{1} << 30;

struct UnpackedFile {
  std::string name;  // one of the set's files
  std::string bytes;
};

/// Verifies the digest of an archive and returns those of the set's files that it holds; other
/// members are ignored. Throws an Error that begins with `where` if digest or archive is wrong.
std::vector<UnpackedFile> unpack(const PublicSet& set, const PublicArchive& archive,
                                 std::string_view bytes, const std::string& where);

}  // namespace fedsmooth
