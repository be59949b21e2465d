// Images that Python picked from a data set.
#pragma once

#include "fedsmooth/jobs/certification.h"

namespace fedsmooth::python {

/// Holds them for jobs about a classifier in hand.
struct ImagesGiven {
  jobs::ImagesInHand images;
};

}  // namespace fedsmooth::python
