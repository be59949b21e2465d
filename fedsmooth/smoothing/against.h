// Cost-sensitive certificates: how far an image may be moved before g, the smoothed classifier, can
// answer with one of given classes, Omega ("never benign within r"). With the selected class A
// outside Omega, which is chosen before the n votes are drawn,
//
//     R  = sigma / 2 (Phi^-1(L) - Phi^-1(U))         A stays likelier than every class of Omega,
//     R' = sigma (Phi^-1(1 / (K + 1)) - Phi^-1(U))   every class of Omega stays below 1 / (K + 1),
//
// where L bounds the probability of A from below and U that of Omega's likeliest class from above,
// each at alpha / 2. Only one class, the truly likeliest, must be bounded, and its votes are at
// most the most votes of any: U needs no correction for the size of Omega. See docs/method.md.
#pragma once

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// The classes listed, or all others.
struct ClassSet {
  std::vector<int64_t> listed;  // in ascending order
  bool others = false;

  bool contains(int64_t label) const;
};

/// Returns whether the votes of all classes are known; tables of earlier versions have two counts.
bool knows_all_votes(const Counts& counts);

/// Returns R, rounded down: within it the selected class is likelier than every class of `omega`.
/// Returns 0 if nothing is claimed, as where the selected class is in `omega`. `counts` must have
/// the votes of all classes, else it is a Bug, and their number must not depend on them. Throws an
/// Error if the law has no such radius.
double radius_above(const Counts& counts, const ClassSet& omega, double sigma, double alpha,
                    const NoiseLaw& law);

/// Returns the larger of R and R', rounded down: within it no class of `omega` is g's answer.
/// `classes` is K; if it is 0, not known, only R is used. `counts` and errors are those of
/// radius_above().
double radius_against(const Counts& counts, const ClassSet& omega, int64_t classes, double sigma,
                      double alpha, const NoiseLaw& law);

/// Returns all classes except the selected one and the k - 1 others with the most n0 votes (the
/// lowest on ties). Within radius_above() of these, the selected class is among g's k likeliest.
/// Throws an Error unless 1 <= k < `classes`.
ClassSet beyond_top(const Counts& counts, int64_t k, int64_t classes);

}  // namespace fedsmooth
