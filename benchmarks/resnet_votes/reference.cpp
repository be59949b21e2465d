#include "reference.h"

#include <cmath>
#include <cstring>
#include <random>

namespace resnet {
namespace {

using Map = std::vector<double>;

float to_bf16(double value) {
  const auto single = static_cast<float>(value);
  uint32_t bits;
  memcpy(&bits, &single, 4);
  bits += 0x7FFF + (bits >> 16 & 1);
  bits &= 0xFFFF0000u;
  float rounded;
  memcpy(&rounded, &bits, 4);
  return rounded;
}

double rounded(double value, Rounding rounding) {
  return rounding == Rounding::kAsGpu ? to_bf16(value) : value;
}

// Sums with bias, of a map [in, side, side]. Neither ReLU nor rounding of the result.
Map convolve(const FoldedConv& c, const Map& in, int side, Rounding rounding) {
  const int out_side = side / c.stride, pad = c.kernel / 2;
  Map out(static_cast<size_t>(c.out) * out_side * out_side);
  for (int o = 0; o < c.out; ++o) {
    double* to = out.data() + static_cast<size_t>(o) * out_side * out_side;
    for (int i = 0; i < out_side * out_side; ++i) to[i] = c.bias[o];
    for (int i = 0; i < c.in; ++i) {
      const double* from = in.data() + static_cast<size_t>(i) * side * side;
      for (int ky = 0; ky < c.kernel; ++ky) {
        for (int kx = 0; kx < c.kernel; ++kx) {
          const double w =
              rounded(c.weight[((o * c.in + i) * c.kernel + ky) * c.kernel + kx], rounding);
          for (int y = 0; y < out_side; ++y) {
            const int iy = y * c.stride + ky - pad;
            if (iy < 0 || iy >= side) continue;
            for (int x = 0; x < out_side; ++x) {
              const int ix = x * c.stride + kx - pad;
              if (ix >= 0 && ix < side) to[y * out_side + x] += w * from[iy * side + ix];
            }
          }
        }
      }
    }
  }
  return out;
}

void finish(Map& map, bool relu, Rounding rounding) {
  for (double& v : map) v = rounded(relu && v < 0 ? 0 : v, rounding);
}

FoldedConv random_conv(int in, int out, int kernel, int stride, double gain, std::mt19937_64& rng) {
  FoldedConv c{in,
               out,
               kernel,
               stride,
               std::vector<float>(in * out * kernel * kernel),
               std::vector<float>(out)};
  std::normal_distribution<double> weight(0, gain * std::sqrt(2.0 / (in * kernel * kernel)));
  std::normal_distribution<double> bias(0, 0.1);
  for (float& w : c.weight) w = static_cast<float>(weight(rng));
  for (float& b : c.bias) b = static_cast<float>(bias(rng));
  return c;
}

}  // namespace

std::vector<double> classify(const FoldedResNet& net, const std::vector<double>& image,
                             Rounding rounding) {
  Map x = image;
  finish(x, false, rounding);
  x = convolve(net.stem, x, 32, rounding);
  finish(x, true, rounding);
  int side = 32;
  for (const Block& block : net.blocks) {
    Map h = convolve(block.first, x, side, rounding);
    finish(h, true, rounding);
    if (block.first.stride == 2) {
      const FoldedConv direct =
          block.shortcut.out > 0 ? block.shortcut : padding_shortcut(block.first.in);
      x = convolve(direct, x, side, rounding);
      finish(x, false, rounding);
      side /= 2;
    }
    h = convolve(block.second, h, side, rounding);
    for (size_t i = 0; i < h.size(); ++i) x[i] += h[i];
    finish(x, true, rounding);
  }
  std::vector<double> logits(net.linear_bias.begin(), net.linear_bias.end());
  for (int c = 0; c < 64; ++c) {
    double mean = 0;
    for (int i = 0; i < 64; ++i) mean += x[c * 64 + i] / 64;
    for (int k = 0; k < net.classes; ++k) logits[k] += net.linear[k * 64 + c] * mean;
  }
  return logits;
}

FoldedResNet random_network(int n, bool project, uint64_t seed) {
  std::mt19937_64 rng(seed);
  FoldedResNet net;
  net.n = n;
  net.stem = random_conv(3, 16, 3, 1, 0.7, rng);
  // A block's sum grows by about 1 + branch^2: bounded over all blocks.
  const double branch = 1 / std::sqrt(static_cast<double>(n));
  for (int stage = 0; stage < 3; ++stage) {
    const int channels = 16 << stage;
    for (int i = 0; i < n; ++i) {
      const bool enters = stage > 0 && i == 0;
      Block block;
      block.first =
          random_conv(enters ? channels / 2 : channels, channels, 3, enters ? 2 : 1, 1, rng);
      block.second = random_conv(channels, channels, 3, 1, branch, rng);
      if (enters && project) block.shortcut = random_conv(channels / 2, channels, 1, 2, 0.7, rng);
      net.blocks.push_back(block);
    }
  }
  std::normal_distribution<double> weight(0, 0.3);
  for (int i = 0; i < net.classes * 64; ++i) net.linear.push_back(static_cast<float>(weight(rng)));
  for (int i = 0; i < net.classes; ++i) net.linear_bias.push_back(static_cast<float>(weight(rng)));
  const float mean[3] = {0.4914f, 0.4822f, 0.4465f}, sd[3] = {0.2023f, 0.1994f, 0.2010f};
  for (int c = 0; c < 3; ++c) {
    net.mean[c] = mean[c];
    net.sd[c] = sd[c];
  }
  return net;
}

}  // namespace resnet
