// Does a table hold? A reviewer's check: every row must follow from its counts, and counts drawn
// anew for some images must not speak against the stored ones.
//
// For each such image Fisher's exact test asks whether the stored count is too high beside the new
// one; together they give the table's p-value (see plausibility.h), and below kImplausible the
// table fails. Where votes were stopped early the new ones are held against the radius itself.
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
  std::string table;              // or its run folder
  int64_t images = 10;            // to draw anew, at most
  std::string model;              // run folder or model; empty: where the table's JSON says
  int64_t n = 0;                  // votes for each; 0: as many as the table has
  std::vector<std::string> with;  // the other members, if `model` is one of several
};

struct RedrawnImage {
  int64_t index = 0;
  int64_t selected = 0;                  // the class whose votes are counted
  int64_t stored_top = 0, stored_n = 0;  // votes in the table
  int64_t top = 0, n = 0;                // new votes
  double p_value = 1.0;                  // that the stored count is no higher than chance
};

/// An honest table fails with a probability of at most this.
inline constexpr double kImplausible = 0.001;

struct Verification {
  std::filesystem::path table;
  int64_t rows = 0;  // all of which follow from their counts
  std::vector<RedrawnImage> images;
  uint64_t seed = 0;     // of the choice of images and of their votes
  double p_value = 1.0;  // of the table

  bool plausible() const { return p_value >= kImplausible; }
};

/// Rows that do not follow from their counts are an Error, and so are a model or data of another
/// SHA-256 than the table's. Images are chosen among all with votes, abstained ones too; the
/// seed is drawn unless the overrides give one, which must not be the table's own.
Verification verify(const VerifyArguments& arguments, const Overrides& overrides,
                    const Context& context);

struct VerifyInHandArguments {
  std::string table;             // or its run folder
  int64_t images = 10;           // to draw anew, at most
  int64_t n = 0;                 // votes for each; 0: as many as the table has
  double sigma = 0.0;            // of the caller's smoothed classifier: must be the table's
  std::optional<uint64_t> seed;  // of the choice and the votes; none: drawn
};

/// Verifies a table by a classifier and images that the caller has, such as one that
/// certify_in_hand() wrote. `images` are those of the table, all of them. A classifier without a
/// file is known by its fingerprint alone, which differs between machines: where the table was made
/// by other arithmetic, that is only a warning.
Verification verify_in_hand(const VerifyInHandArguments& arguments,
                            const ClassifierInHand& classifier, const ImagesInHand& images,
                            const Context& context);

}  // namespace fedsmooth::jobs
