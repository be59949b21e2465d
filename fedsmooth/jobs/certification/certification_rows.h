// The rows that images of a certification get: at once, or continued with more votes.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/jobs/certification/certification_job.h"
#include "fedsmooth/records/certificates.h"

namespace fedsmooth::jobs {

/// Rows of the planned images number begin .. end - 1, a wave.
std::vector<CertificateRow> certify_wave(const CertificationJob& plan, int64_t begin, int64_t end);

/// Rows whose radii were not decided by fewer votes than an image may have now, n: by number of
/// votes, then in their order.
std::vector<CertificateRow> undecided_rows(const std::vector<CertificateRow>& rows, int64_t n);

/// The same rows with more votes. All have as many now.
std::vector<CertificateRow> continue_wave(const CertificationJob& plan,
                                          const std::vector<CertificateRow>& rows);

}  // namespace fedsmooth::jobs
