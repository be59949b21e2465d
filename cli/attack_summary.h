// What `attack` ends with: accuracy under attack beside certified accuracy.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace fedsmooth::cli {

/// Prints the summary of a table of attacks. If there are certificates for the same classifier
/// (`identity` tells), those of the attacked images stand beside it, with a warning if an attack
/// broke one.
void print_attacks(const std::filesystem::path& table, const nlohmann::json& identity,
                   const std::filesystem::path& certificates, const Common& common);

}  // namespace fedsmooth::cli
