// Writes a run's numbers for TensorBoard into the folder `tensorboard` of the run folder: one file
// for the rounds, one for the certificates. Both follow from the run's tables and are rewritten
// from them when a run resumes, so that every step occurs once.
#pragma once

#include <filesystem>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/rounds.h"

namespace fedsmooth::jobs {

/// Writes the file of the rounds anew, with the rounds that are done.
void begin_round_events(const std::filesystem::path& run, const std::vector<RoundRow>& rows);
/// Appends a round to the file that begin_round_events() wrote.
void append_round_event(const std::filesystem::path& run, const RoundRow& row);

/// Writes the file of the certificates: certified accuracy at l2 radii up to 2, at step `round`.
/// Writes nothing if there are no rows.
void write_certificate_events(const std::filesystem::path& run, int64_t round,
                              const std::vector<CertificateRow>& rows);

}  // namespace fedsmooth::jobs
