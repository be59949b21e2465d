#include "fedsmooth/base/random.h"

#include <algorithm>

#include "fedsmooth/base/normal.h"
#include "fedsmooth/base/vector_clones.h"

namespace fedsmooth {
namespace {

constexpr int64_t kBlocks = 64;  // Philox calls a pass: enough to fill vectors, small enough for L1

struct Words {
  uint32_t lane[4][kBlocks];
};

inline __attribute__((always_inline)) void draw(const Stream& s, uint32_t sample, int64_t first,
                                                Words& words) {
  for (int64_t i = 0; i < kBlocks; ++i) {
    const philox4x32_ctr_t w =
        philox(s.key.value, static_cast<uint32_t>(first + i), sample, s.item, s.client);
    for (int lane = 0; lane < 4; ++lane) words.lane[lane][i] = w.v[lane];
  }
}

inline __attribute__((always_inline)) void to_normals(const Words& words, float* out) {
  for (int64_t i = 0; i < kBlocks; ++i) {
    normal_pair(words.lane[0][i], words.lane[1][i], out[4 * i], out[4 * i + 1]);
    normal_pair(words.lane[2][i], words.lane[3][i], out[4 * i + 2], out[4 * i + 3]);
  }
}

inline __attribute__((always_inline)) bool reaches_tail(const Words& words) {
  uint32_t least = words.lane[0][0];
  for (int64_t i = 0; i < kBlocks; ++i) {
    least = std::min(least, std::min(words.lane[0][i], words.lane[2][i]));
  }
  return least < kTailWord;
}

// Makes blocks again that have a word in the tail.
void redraw_tails(const Stream& s, uint32_t sample, int64_t first, const Words& words, float* out) {
  for (int64_t i = 0; i < kBlocks; ++i) {
    if (words.lane[0][i] >= kTailWord && words.lane[2][i] >= kTailWord) continue;
    draw_noise(s.key.value, static_cast<uint32_t>(first + i), sample, s.item, s.client,
               out + 4 * i);
  }
}

template <bool kTails>
inline __attribute__((always_inline)) void fill(Stream stream, uint32_t sample, float* out,
                                                int64_t count) {
  Words words;
  float last[4 * kBlocks];
  for (int64_t done = 0; done < count; done += 4 * kBlocks) {
    draw(stream, sample, done / 4, words);
    const bool whole = done + 4 * kBlocks <= count;
    float* to = whole ? out + done : last;
    to_normals(words, to);
    if (kTails && reaches_tail(words)) redraw_tails(stream, sample, done / 4, words, to);
    if (!whole) std::copy_n(last, count - done, out + done);
  }
}

}  // namespace

FEDSMOOTH_VECTOR_CLONES
void fill_normal(Stream stream, uint32_t sample, float* out, int64_t count) {
  fill<false>(stream, sample, out, count);
}

FEDSMOOTH_VECTOR_CLONES
void fill_noise(Stream stream, uint32_t sample, float* out, int64_t count) {
  fill<true>(stream, sample, out, count);
}

void fill_words(Stream stream, uint32_t sample, uint32_t* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 4) {
    const philox4x32_ctr_t w =
        philox(stream.key.value, static_cast<uint32_t>(i / 4), sample, stream.item, stream.client);
    std::copy_n(w.v, std::min<int64_t>(4, count - i), out + i);
  }
}

void fill_uniform(Stream stream, uint32_t sample, float* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 4) {
    const philox4x32_ctr_t w =
        philox(stream.key.value, static_cast<uint32_t>(i / 4), sample, stream.item, stream.client);
    for (int64_t j = 0; j < std::min<int64_t>(4, count - i); ++j) {
      out[i + j] = static_cast<float>(w.v[j] >> 8) * 0x1p-24f;
    }
  }
}

}  // namespace fedsmooth
