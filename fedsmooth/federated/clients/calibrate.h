// Calibrated logits (CalFAT: Chen et al., NeurIPS 2022): the loss and the attack of a client use
// z_c + log(n_c / n), n_c of its n images being of class c. A label-skewed client then has nothing
// to gain from forgetting the classes that it lacks. The weights that it sends are of the plain
// network.
#pragma once

#include <memory>
#include <vector>

#include "fedsmooth/data/dataset.h"
#include "fedsmooth/federated/passes.h"

namespace fedsmooth {

/// Returns log(max(n_c, 1e-7) / n) for each class of the data.
std::vector<float> log_class_shares(const Dataset& data, const std::vector<int64_t>& images);

/// Returns passes that add `offsets` to the logits of every image. `passes` must outlive them.
std::unique_ptr<Passes> calibrated(Passes& passes, std::vector<float> offsets);

}  // namespace fedsmooth
