// Which test images a page shows of a run, so that a reader sees what its numbers are about.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/records/certificates.h"

namespace fedsmooth {

struct GalleryGroup {
  std::string title;
  std::vector<size_t> rows;  // indices in the table of certificates
  int64_t total = 0;         // how many rows are of this kind
};

/// The correct answers of the largest radius, the most undecided abstentions, and the wrong answers
/// of the largest radius; of each at most `most`. Groups without rows are left out.
std::vector<GalleryGroup> choose_gallery(const std::vector<CertificateRow>& rows, size_t most = 6);

}  // namespace fedsmooth
