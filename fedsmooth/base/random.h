// Randomness is passed, never global: every function that draws takes a Key, and a Key with three
// counters names one independent stream of Philox4x32-10 (Salmon et al., SC 2011). The same
// (seed, purpose, round, client, step, sample) draws the same numbers whether the work runs in one
// thread, in many, on a GPU or over several machines, and whatever the batch size.
//
// The Philox counter is (coordinate / 4, sample, item, client), the key a hash of seed, purpose and
// round: within one key no two draws share a counter.
#pragma once

#include <cstdint>

namespace fedsmooth {

struct Key {
  uint64_t value = 0;
};

/// The use of a stream. Draws of different purposes are independent: the votes that choose a class
/// and the votes that bound its probability must never share noise.
enum class Purpose : uint64_t {
  kSelection = 1,   // CERTIFY, the n0 draws
  kEstimation = 2,  // CERTIFY, the n draws
  kPrediction = 3,  // PREDICT
  kWeights = 4,     // initial weights
  kShapes = 5,      // the built-in data
  kProbe = 6,       // inputs on which a classifier is checked or timed
  kPartition = 7,   // which images a client holds
  kCohort = 8,      // which clients a round takes
  kShuffle = 9,     // the order of a client's images
  kAugment = 10,    // crops and flips
  kTraining = 11,   // SmoothAdv's noises
  kDropout = 12,
  kEvaluation = 13,  // votes on the test set during training
  kAttack = 14,      // noises of the attack on a trained model
  kObjective = 15,   // what an objective draws beside noise: how far SmoothMix mixes, for one
  kScreening = 16,   // votes by which a client chooses among its images
  kGroups = 17,      // which group a client belongs to
  kConformal = 18,   // the one noise per image of conformal sets
};

/// The `index`-th child of `key` (splitmix64, so neighbouring indices are unrelated).
constexpr Key fold(Key key, uint64_t index) {
  uint64_t z = key.value + 0x9e3779b97f4a7c15 * (index + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return {z ^ (z >> 31)};
}

constexpr Key make_key(uint64_t seed, Purpose purpose, uint64_t round = 0) {
  return fold(fold(fold(Key{}, seed), static_cast<uint64_t>(purpose)), round);
}

/// A family of samples; `item` is an image or a step, `client` is 0 outside federated training.
struct Stream {
  Key key;
  uint32_t item = 0;
  uint32_t client = 0;
};

/// Writes coordinates 0 .. count - 1 of sample number `sample`: standard normals, a pure function
/// of the arguments, with the same bits on every machine. Their magnitude is at most 6.66, because
/// the uniform has 31 bits. Training uses this function.
void fill_normal(Stream stream, uint32_t sample, float* out, int64_t count);

/// Writes noise for votes: standard normals as fill_normal(), except that the uniform has 64 bits
/// where its first 16 are zero (once in 65,536 pairs), so that magnitudes reach 9.4. A certificate
/// depends on the tails of the noise; training keeps fill_normal(), so that models repeat bit for
/// bit.
void fill_noise(Stream stream, uint32_t sample, float* out, int64_t count);

/// Writes the stream as raw 32-bit words: uniform integers for everything that is not noise. One
/// stream must not be read both as words and as normals.
void fill_words(Stream stream, uint32_t sample, uint32_t* out, int64_t count);

/// Writes uniform floats in [0, 1) with 24 bits, from the words of the stream.
void fill_uniform(Stream stream, uint32_t sample, float* out, int64_t count);

}  // namespace fedsmooth
