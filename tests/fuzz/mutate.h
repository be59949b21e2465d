// Small damage to files, of the kinds that readers must survive.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace fedsmooth {

using Random = std::mt19937_64;

/// A number from 0 to `count` - 1.
size_t below(Random& random, size_t count);

/// One to four changes: bits, bytes, cuts, insertions, repetitions, slices of other `seeds`.
std::string mutate_bytes(const std::string& valid, const std::vector<std::string>& seeds,
                         Random& random);

/// As mutate_bytes(), half of the time with a number replaced by one that invites mistakes.
std::string mutate_text(const std::string& valid, const std::vector<std::string>& seeds,
                        Random& random);

/// As mutate_bytes(), half of the time with correct chunk sums, so that libpng does not stop there.
std::string mutate_png(const std::string& valid, const std::vector<std::string>& seeds,
                       Random& random);

/// Damages the header's text, the header's length or the data.
std::string mutate_safetensors(const std::string& valid, const std::vector<std::string>& seeds,
                               Random& random);

}  // namespace fedsmooth
