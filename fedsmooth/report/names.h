// Names of runs as a reader wants them. Sweeps name runs by joining parts with "-", such as
// rounds-gamma0.1-cat-rs; with labels for some parts that becomes "150 rounds, γ = 0.1, CAT-RS".
#pragma once

#include <map>
#include <string>

namespace fedsmooth {

/// Replaces the longest sequences of parts that `labels` has, and writes the others plainly:
/// "learning_rate0.1" as "learning rate 0.1". A name without any label and without a part that ends
/// in a number is returned as it is.
std::string readable_name(const std::string& name,
                          const std::map<std::string, std::string>& labels = {});

}  // namespace fedsmooth
