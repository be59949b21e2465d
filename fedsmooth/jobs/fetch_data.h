// Downloads, verifies and unpacks a published data set, completely or not at all.
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
  bool is_new = false;  // false: it existed and agrees with what was published
};

/// Returns the set of this name, which lives as long as the program. Throws an Error that lists the
/// names if there is none.
const PublicSet& find_public_set(const std::string& name);

/// Puts the set's files into out/FOLDER, with their SHA-256 in SHA256SUMS beside them. A folder
/// that exists is verified, by SHA256SUMS if it has one, else against the archives; one that
/// differs is refused and not changed. A new folder appears by one rename, so that a kill leaves no
/// partial folder; the next call removes the hidden folder that a kill left.
FetchedData fetch_data(const PublicSet& set, const FetchArguments& arguments,
                       const Context& context);

}  // namespace fedsmooth::jobs
