// A reviewer's check of a table: every row must follow from its counts, and new votes for some
// images must not contradict the stored counts.
//
// For each of these images Fisher's exact test asks whether the stored count is too high compared
// with the new one. Together they give the table's p-value (see plausibility.h); below kImplausible
// the table fails. If votes were stopped early, the new votes are tested against the radius itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

struct VerifyArguments {
  std::string table;              // table or run folder
  int64_t images = 10;            // maximum number of images to draw anew
  std::string model;              // run folder or model; empty: as the table's JSON states
  int64_t n = 0;                  // new votes for each image; 0: as many as the row has
  std::vector<std::string> with;  // the other members, if `model` is one of several
};

struct RedrawnImage {
  int64_t index = 0;
  int64_t selected = 0;                  // the class whose votes are counted
  int64_t stored_top = 0, stored_n = 0;  // votes in the table
  int64_t top = 0, n = 0;                // new votes
  double p_value = 1.0;                  // of Fisher's test, see above
};

/// An honest table fails with at most this probability.
inline constexpr double kImplausible = 0.001;

struct Verification {
  std::filesystem::path table;
  int64_t rows = 0;  // number of rows; each follows from its counts
  std::vector<RedrawnImage> images;
  uint64_t seed = 0;     // of the choice of images and of their votes
  double p_value = 1.0;  // of the table

  bool plausible() const { return p_value >= kImplausible; }
};

/// Verifies a table by its model and data. Throws an Error if a row does not follow from its
/// counts, or if model or data have another SHA-256 than the table's. Images are chosen among all
/// with votes, including abstentions. The seed is drawn unless the overrides give one, which must
/// not be the table's own.
Verification verify(const VerifyArguments& arguments, const Overrides& overrides,
                    const Context& context);

struct VerifyInHandArguments {
  std::string table;             // table or run folder
  int64_t images = 10;           // maximum number of images to draw anew
  int64_t n = 0;                 // new votes for each image; 0: as many as the row has
  double sigma = 0.0;            // of the caller's smoothed classifier; must be the table's
  std::optional<uint64_t> seed;  // of the choice and the votes; none: drawn
};

/// Verifies a table, such as one that certify_in_hand() wrote, by the caller's classifier and
/// images, which must include all images of the table. Throws an Error if a row does not follow
/// from its counts, or if classifier or images are not the table's. A classifier without a file is
/// compared by its fingerprint, which differs between machines: if the table was made by other
/// arithmetic, a difference is only a warning.
Verification verify_in_hand(const VerifyInHandArguments& arguments,
                            const ClassifierInHand& classifier, const ImagesInHand& images,
                            const Context& context);

}  // namespace fedsmooth::jobs
