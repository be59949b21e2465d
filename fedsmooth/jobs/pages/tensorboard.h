// A run's numbers for TensorBoard, in the folder `tensorboard` of the run folder: one file for the
// rounds, one for the certificates. Both follow from the run's tables, and are written anew from
// them when a run resumes, so that every step is there once.
#pragma once

#include <filesystem>
#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/rounds.h"

namespace fedsmooth::jobs {

/// Begins the file of the rounds with those that are done.
void begin_round_events(const std::filesystem::path& run, const std::vector<RoundRow>& rows);
void append_round_event(const std::filesystem::path& run, const RoundRow& row);

/// Certified accuracy at the usual radii, as of step `round`.
void write_certificate_events(const std::filesystem::path& run, int64_t round,
                              const std::vector<CertificateRow>& rows);

}  // namespace fedsmooth::jobs
