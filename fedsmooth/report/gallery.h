// Chooses the test images of a run that a page shows.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/records/certificates.h"

namespace fedsmooth {

struct GalleryGroup {
  std::string title;
  std::vector<size_t> rows;  // indices in the table of certificates
  int64_t total = 0;         // number of rows of this kind in the table
};

/// Returns the correct answers with the largest radii, the most undecided abstentions, and the
/// wrong answers with the largest radii, at most `most` of each. Groups without rows are left out.
std::vector<GalleryGroup> choose_gallery(const std::vector<CertificateRow>& rows, size_t most = 6);

}  // namespace fedsmooth
