// A published data set, downloaded, verified and unpacked: all of it or nothing.
#pragma once

#include <filesystem>
#include <string>

#include "fedsmooth/data/public_sets.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

struct FetchArguments {
  std::filesystem::path out = "data";
  std::string from;  // a folder or an address with the archives; empty: where they are published
};

struct FetchedData {
  std::filesystem::path folder;
  bool is_new = false;  // false: it was there, and is what was published
};

/// The row of this name; an Error that lists the names if there is none.
const PublicSet& find_public_set(const std::string& name);

/// Puts the set's files into out/FOLDER, with their SHA-256 in SHA256SUMS beside them. A folder
/// that is there is verified: by SHA256SUMS if it has one, else against the archives. One that
/// differs is refused and left alone. The folder appears by one rename, so that a kill leaves
/// nothing half; what it leaves under a hidden name is removed by the next call. Addresses are read
/// by curl.
FetchedData fetch_data(const PublicSet& set, const FetchArguments& arguments,
                       const Context& context);

}  // namespace fedsmooth::jobs
