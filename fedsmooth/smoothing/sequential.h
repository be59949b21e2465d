// Tests of given radii that draw votes until all radii are decided. Radius r is certified by
// rejecting "the class has at most the probability that r needs"; see e_process.h for the evidence,
// which may be evaluated at any time. Radii are decided in ascending order only:
//
//     while the smallest undecided radius has E >= 1 / alpha: it is latched (certified for good);
//     if its E' >= 1 / beta: it and all larger ones are given up.
//
// A radius above the true one is latched only after the smallest such radius: one event of
// probability at most alpha, for any number of radii. Giving up too early loses a radius and is
// never unsound.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// Returns the radii in ascending order without duplicates, with 0 as the first. Throws an Error if
/// one is negative or not finite, or if there are more than kMaxRadii.
std::vector<double> ladder_of(std::vector<double> radii);
inline constexpr size_t kMaxRadii = 1000;

/// Returns the certificate of an image whose radii ladder[0], ladder[1], ... were latched at these
/// counts.
Certificate certificate_from_latches(const Counts& counts, std::vector<Latch> latches,
                                     const std::vector<double>& ladder, double sigma,
                                     const NoiseLaw& law);

/// Returns whether these latches, in the order of the ladder, are valid at level alpha: each has
/// enough evidence, and one sequence of votes that ends at `counts` can have passed through all of
/// their counts.
bool latches_hold(const Counts& counts, const std::vector<Latch>& latches,
                  const std::vector<double>& ladder, double sigma, double alpha,
                  const NoiseLaw& law);

/// Returns the latches that are valid at another level alpha, which must have been chosen without
/// regard to these votes. Each radius uses the counts at which it was latched or, if they are not
/// enough, the last counts.
std::vector<Latch> latches_at(const Counts& counts, const std::vector<Latch>& latches,
                              const std::vector<double>& ladder, double sigma, double alpha,
                              const NoiseLaw& law);

/// Returns the next number of votes after n at which the test looks: 100 at first, then a fifth
/// more each time, at most `cap`. Looking seldom costs votes. The schedule does not depend on the
/// votes, so an image's result does not depend on which images are counted beside it.
int64_t next_look(int64_t n, int64_t cap);

/// The test of a ladder of radii at given levels. It caches its limits; for one thread at a time.
class RadiiTest {
 public:
  RadiiTest(std::vector<double> ladder, double sigma, double alpha, double beta,
            const NoiseLaw& law);

  const std::vector<double>& ladder() const { return ladder_; }

  /// Looks at n votes, `top` of them for the class, and appends the radii that are latched now to
  /// `latches`. Returns whether all radii are decided.
  bool look(int64_t top, int64_t n, std::vector<Latch>& latches);

 private:
  // Counts of the class that latch a radius (at least), and that give it up (at most).
  struct Limits {
    int64_t latch = 0, give_up = 0;
  };
  const Limits& limits(int64_t n, size_t radius);

  std::vector<double> ladder_, needed_;
  double alpha_, beta_;
  std::map<std::pair<int64_t, size_t>, Limits> limits_;
};

}  // namespace fedsmooth
