// `certify` for image files.
#pragma once

#include "cli/options.h"
#include "fedsmooth/jobs/predict.h"

namespace fedsmooth::cli {

/// Prints the class of each image and the radius within which it is proved, or JSON. Returns the
/// exit status.
int run_certify_images(const jobs::PredictArguments& arguments, const Overrides& overrides,
                       const CommandContext& common);

}  // namespace fedsmooth::cli
