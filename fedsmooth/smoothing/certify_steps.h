// What CERTIFY of one image and of many have in common.
#pragma once

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// The class with the most votes, the first on ties.
int64_t argmax(const Votes& votes);
/// The most votes for a class other than `selected`.
int64_t most_for_another(const Votes& votes, int64_t selected);

/// Before the first votes: f is a function, and x is an image in pixel space.
void check_subject(Sampler& sampler, const Array& x);

VoteRequest selection_votes(const Array& x, double sigma, const CertifyOptions& options,
                            uint64_t seed, uint32_t index);
/// The bound holds only if these votes are independent of the ones that chose the class.
VoteRequest estimation_votes(const Array& x, double sigma, const CertifyOptions& options,
                             uint64_t seed, uint32_t index);

Counts counts_for(int64_t selected, const Votes& votes, int64_t n);
/// With gaps, against `malicious` clients.
Counts counts_for(int64_t selected, const VotesAndGaps& tally, int64_t n, int64_t malicious);

/// The votes of requests, each with the gaps of its selected class where f is several groups.
std::vector<VotesAndGaps> count_for(Sampler& sampler, const std::vector<VoteRequest>& requests,
                                    const std::vector<int64_t>& selected);

}  // namespace fedsmooth
