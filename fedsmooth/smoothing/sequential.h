// Given radii, decided with as many votes as it takes. Radius r is certified by rejecting "the
// class has at most the probability that r needs"; see e_process.h for the evidence, which may be
// looked at at any time. Radii are decided in ascending order only:
//
//     while the smallest undecided radius has E >= 1 / alpha: it is latched, for good;
//     if its E' >= 1 / beta: it and all larger ones are given up.
//
// A radius above the truth is latched only after the smallest of those: one event of probability
// at most alpha, however many radii there are. Giving up too early loses a radius, never truth.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// The radii in ascending order, each once, with 0 as the first. An Error if one is negative or not
/// finite, or if there are more than kMaxRadii.
std::vector<double> ladder_of(std::vector<double> radii);
inline constexpr size_t kMaxRadii = 1000;

/// The certificate of an image whose radii ladder[0], ladder[1], ... were latched at these counts.
Certificate certificate_from_latches(const Counts& counts, std::vector<Latch> latches,
                                     const std::vector<double>& ladder, double sigma,
                                     const NoiseLaw& law);

/// Whether these latches, in the order of the ladder, support what they claim at level alpha: each
/// one's evidence, and counts that one sequence of votes can have had, up to `counts`.
bool latches_hold(const Counts& counts, const std::vector<Latch>& latches,
                  const std::vector<double>& ladder, double sigma, double alpha,
                  const NoiseLaw& law);

/// Latches that hold at another level, chosen without regard to these votes: each radius by the
/// counts at which it was latched or, if they are not enough, by the last ones.
std::vector<Latch> latches_at(const Counts& counts, const std::vector<Latch>& latches,
                              const std::vector<double>& ladder, double sigma, double alpha,
                              const NoiseLaw& law);

/// The number of votes after n at which to look again: 100 at first, then a fifth more each time,
/// at most `cap`. Looking seldom costs votes; that it does not depend on the votes keeps an
/// image's result the same in whatever company its votes are counted.
int64_t next_look(int64_t n, int64_t cap);

/// The test of a ladder of radii at given levels. Remembers what it computed.
class RadiiTest {
 public:
  RadiiTest(std::vector<double> ladder, double sigma, double alpha, double beta,
            const NoiseLaw& law);

  const std::vector<double>& ladder() const { return ladder_; }

  /// Looks at n votes, `top` of them for the class: appends to `latches` what is latched now.
  /// Returns whether everything is decided.
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
