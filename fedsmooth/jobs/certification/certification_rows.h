// Makes the rows of a certification's table, for new images or by more votes for earlier rows.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/jobs/certification/certification_job.h"
#include "fedsmooth/records/certificates.h"

namespace fedsmooth::jobs {

/// Certifies the planned images [begin, end) as one wave, and returns their rows.
std::vector<CertificateRow> certify_wave(const CertificationJob& job, int64_t begin, int64_t end);

/// Returns the rows of given radii whose cap was below n and whose votes have not decided all
/// radii. They are sorted by their number of votes, equal ones in the order of `rows`.
std::vector<CertificateRow> undecided_rows(const std::vector<CertificateRow>& rows, int64_t n);

/// Returns these rows continued with more votes. All must have the same number of votes so far.
std::vector<CertificateRow> continue_wave(const CertificationJob& job,
                                          const std::vector<CertificateRow>& rows);

}  // namespace fedsmooth::jobs
