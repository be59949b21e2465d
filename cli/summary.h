// What every command ends with that writes a table of certificates.
#pragma once

#include <filesystem>

#include "cli/options.h"
#include "fedsmooth/jobs/against.h"

namespace fedsmooth::cli {

/// Prints the table of certified accuracy, what is certified against classes if that is asked, and
/// where the file is, or the summary as JSON.
void print_summary(const std::filesystem::path& table, const CommandContext& common,
                   const jobs::AgainstOptions& against = {});

}  // namespace fedsmooth::cli
