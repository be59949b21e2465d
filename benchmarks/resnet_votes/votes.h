// Votes of a CIFAR ResNet (depth 6 n + 2, batch norm folded) for noisy copies of images, on Hopper.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace resnet {

struct FoldedConv {
  int in = 0, out = 0, kernel = 3, stride = 1;
  std::vector<float> weight;  // [out, in, kernel, kernel]
  std::vector<float> bias;    // [out]
};

struct Block {
  FoldedConv first, second;
  FoldedConv shortcut;  // 1x1, stride 2; out == 0 where there is none
};

struct FoldedResNet {
  int n = 0;                  // blocks of a stage
  FoldedConv stem;            // 3 -> 16 channels
  std::vector<Block> blocks;  // 3 n
  int classes = 10;
  std::vector<float> linear;       // [classes, 64]
  std::vector<float> linear_bias;  // [classes]
  float mean[3] = {}, sd[3] = {1, 1, 1};
};

/// The shortcut without weights (option A), as a 1x1 convolution: every second pixel, channels
/// filled up with zeros at the end. Exact: it multiplies by 1 and 0 only.
FoldedConv padding_shortcut(int in);

/// Copies x + sigma e of one image, as in fedsmooth's NoisyCopies.
struct Copies {
  uint64_t key = 0;
  uint32_t item = 0, client = 0;
  float sigma = 0;
  int64_t first = 0;  // place of sample 0 in the list of all copies
};

/// Rows of a pass are the copies from `begin` on, of `total`. Pointers are the device's.
struct Rows {
  const Copies* copies = nullptr;
  int images = 0;
  const float* x = nullptr;  // [images, 3, 32, 32]
  int64_t begin = 0, total = 0;
  int rows = 0;
};

class Voter {
 public:
  /// Passes of at most `capacity` rows.
  Voter(const FoldedResNet& network, int capacity);
  ~Voter();

  /// Adds the rows' votes to counts [images, classes]; writes logits [rows, classes] unless null.
  /// `stages` (bits 0-2) leaves kernels out, for timing.
  void enqueue(const Rows& rows, int* counts, float* logits, cudaStream_t stream, int stages = 7);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace resnet
