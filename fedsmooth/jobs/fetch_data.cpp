#include "fedsmooth/jobs/fetch_data.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/jobs/curl.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSums = "SHA256SUMS";  // in the format of the program sha256sum

bool is_address(const std::string& from) { return from.find("://") != std::string::npos; }

std::vector<std::string> addresses(const PublicSet& set, const std::string& from) {
  return from.empty() ? set.addresses : std::vector<std::string>{from};
}

std::string join_address(std::string folder, const std::string& name) {
  while (folder.ends_with('/')) folder.pop_back();
  return folder + "/" + name;
}

// A hidden folder that only this call uses, because it holds the lock on the set. Files that a
// killed call left in it are removed first.
class WorkFolder {
 public:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {
    remove();
    std::error_code status;
    const bool made = fs::create_directory(path_, status);
    if (status) throw Error("{}: cannot be made: {}", path_.string(), status.message());
    if (!made) throw Error("{}: is there and not ours; remove it", path_.string());
  }
  ~WorkFolder() { remove(); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  // Removes the files and the one folder of files in it. remove_all() is not used: see
  // tests/folder.h.
  void remove() {
    if (!is_folder(path_)) return;  // a link may lead to a folder that is not ours
    remove_files(path_ / "files");
    remove_files(path_);
  }
  static bool is_folder(const fs::path& path) {
    std::error_code status;
    return fs::is_directory(fs::symlink_status(path, status));
  }
  static void remove_files(const fs::path& folder) {
    if (!is_folder(folder)) return;
    std::error_code status;
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(folder, status))
      entries.push_back(entry.path());
    for (const fs::path& entry : entries) fs::remove(entry, status);
    fs::remove(folder, status);
  }

  fs::path path_;
};

// Returns the archive's files, from the first address that has the archive complete.
std::vector<UnpackedFile> fetch_archive(const PublicSet& set, const PublicArchive& archive,
                                        const FetchArguments& arguments, const fs::path& work,
                                        const Context& context) {
  const std::vector<std::string> from = addresses(set, arguments.from);
  for (size_t i = 0;; ++i) {
    const std::string where = join_address(from[i], archive.name);
    try {
      if (!is_address(where)) return unpack(set, archive, read_file(where), where);
      context.note("downloading " + where);
      download(where, work / archive.name, kLargestArchive, context);
      return unpack(set, archive, read_file(work / archive.name), where);
    } catch (const Error& error) {
      if (i + 1 == from.size()) throw;
      context.warn(error.what());
    }
  }
}

// Returns the files of all archives. Throws an Error if a file of the set is missing.
std::vector<UnpackedFile> fetch_files(const PublicSet& set, const FetchArguments& arguments,
                                      const fs::path& work, const Context& context) {
  std::vector<UnpackedFile> all;
  for (const PublicArchive& archive : set.archives) {
    for (UnpackedFile& file : fetch_archive(set, archive, arguments, work, context)) {
      all.push_back(std::move(file));
    }
  }
  for (const std::string& name : set.files) {
    if (std::ranges::find(all, name, &UnpackedFile::name) == all.end()) {
      throw Error("{}: its archives do not have {}", set.name, name);
    }
  }
  return all;
}

std::string format_sums(const std::vector<UnpackedFile>& files) {
  std::string text;
  for (const UnpackedFile& file : files) text += sha256(file.bytes) + "  " + file.name + "\n";
  return text;
}

// Throws an Error if the file has another digest.
void check_file(const fs::path& path, const std::string& digest) {
  if (sha256(read_file(path)) != digest) {
    throw Error("{}: differs from the published file; move it away, nothing was changed",
                path.string());
  }
}

// Returns whether SHA256SUMS exists and lists every file of the set, which then must agree with it.
bool verify_sums(const PublicSet& set, const fs::path& folder) {
  if (!fs::exists(folder / kSums)) return false;
  const std::string text = read_file(folder / kSums);
  for (const std::string& name : set.files) {
    const std::string ending = "  " + name + "\n";
    const size_t at = text.find(ending);
    if (at == std::string::npos || at < 64 || !fs::exists(folder / name)) return false;
    check_file(folder / name, text.substr(at - 64, 64));
  }
  return true;
}

// Compares the files of an existing folder, then adds the missing ones.
void complete_folder(const fs::path& folder, const std::vector<UnpackedFile>& files) {
  for (const UnpackedFile& file : files) {
    if (fs::exists(folder / file.name)) check_file(folder / file.name, sha256(file.bytes));
  }
  for (const UnpackedFile& file : files) {
    if (!fs::exists(folder / file.name)) write_file(folder / file.name, file.bytes);
  }
  write_file(folder / kSums, format_sums(files));
}

void make_folder(const fs::path& folder, const fs::path& work,
                 const std::vector<UnpackedFile>& files) {
  const fs::path made = work / "files";
  for (const UnpackedFile& file : files) write_file(made / file.name, file.bytes);
  write_file(made / kSums, format_sums(files));
  std::error_code status;
  fs::rename(made, folder, status);
  if (status) throw Error("{}: cannot be written: {}", folder.string(), status.message());
}

}  // namespace

const PublicSet& find_public_set(const std::string& name) {
  std::vector<std::string> names;
  for (const PublicSet& set : public_sets()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw Error("data: {}: not known; there are {}", name, fmt::join(names, ", "));
}

FetchedData fetch_data(const PublicSet& set, const FetchArguments& arguments,
                       const Context& context) {
  const fs::path folder = arguments.out / set.folder;
  const FileLock lock(folder);  // also makes the folder --out
  if (verify_sums(set, folder)) return {folder, false};
  const WorkFolder work(arguments.out / ("." + set.folder + ".unfinished"));
  const std::vector<UnpackedFile> files = fetch_files(set, arguments, work.path(), context);
  if (fs::exists(folder)) {
    complete_folder(folder, files);
  } else {
    make_folder(folder, work.path(), files);
  }
  return {folder, true};
}

}  // namespace fedsmooth::jobs
