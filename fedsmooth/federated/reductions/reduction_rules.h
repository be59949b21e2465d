// The library's own reductions, for the table in reductions.cpp.
#pragma once

#include <vector>

#include "fedsmooth/federated/reductions/reductions.h"

namespace fedsmooth {

// coordinate_reductions.cpp
Reduction median_reduction();
Reduction trimmed_mean_reduction();

// distance_reductions.cpp
Reduction krum_reduction();
Reduction multi_krum_reduction();
Reduction geometric_median_reduction();

/// The average that FixedPointSum gives of clients with these shares, by threads that have values
/// of their own. There is at least one client.
Weights average_of(const std::vector<ClientWeights>& each, const std::vector<double>& shares,
                   const std::vector<Parameter>& known, int threads);
/// Tensors may have shares of their own.
using SharesOfTensor = std::function<const std::vector<double>&(size_t tensor)>;
Weights average_of(const std::vector<ClientWeights>& each, const SharesOfTensor& shares,
                   const std::vector<Parameter>& known, int threads);

/// |a - b|^2 in double, added up in an order of its own: the same bits on every machine.
double squared_distance(const float* a, const float* b, int64_t count);

}  // namespace fedsmooth
