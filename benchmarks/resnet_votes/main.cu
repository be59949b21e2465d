// Checks the votes against the reference and times them: main [check] [small] [time] [profile
// DEPTH].
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "fedsmooth/base/normal.h"
#include "reference.h"
#include "votes.h"

using namespace resnet;

namespace {

constexpr uint64_t kKey = 0x1234567890ABCDEF;
constexpr int kImageSize = 3072;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

template <typename T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : size_(values.size()) {
    check(cudaMalloc(&data_, size_ * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(data_); }
  T* data() const { return data_; }
  std::vector<T> download() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return values;
  }

 private:
  size_t size_;
  T* data_ = nullptr;
};

struct Request {
  int image;  // also the stream's item
  int samples;
};

std::vector<float> random_images(int count, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> x(static_cast<size_t>(count) * kImageSize);
  for (float& v : x) v = uniform(rng);
  return x;
}

struct Result {
  std::vector<float> logits;  // [row, class]
  std::vector<int> counts;    // [request, class]
};

// All copies of the requests, in passes of `rows`, from copy `begin` on.
Result run(Voter& voter, const FoldedResNet& net, const std::vector<float>& images,
           const std::vector<Request>& requests, int rows_at_once, int64_t begin, float sigma) {
  std::vector<Copies> copies;
  std::vector<float> x;
  int64_t total = 0;
  for (const Request& r : requests) {
    copies.push_back({kKey, static_cast<uint32_t>(r.image), 0, sigma, total});
    x.insert(x.end(), images.begin() + int64_t{r.image} * kImageSize,
             images.begin() + int64_t{r.image + 1} * kImageSize);
    total += r.samples;
  }
  const Array<Copies> device_copies(copies);
  const Array<float> device_x(x);
  const Array<int> counts(std::vector<int>(requests.size() * net.classes));
  // Poisoned, so that a logit that nobody wrote shows.
  const Array<float> logits(std::vector<float>((total + rows_at_once) * net.classes, NAN));
  for (int64_t at = begin; at < total; at += rows_at_once) {
    const int rows = static_cast<int>(std::min<int64_t>(rows_at_once, total - at));
    voter.enqueue(
        {device_copies.data(), static_cast<int>(requests.size()), device_x.data(), at, total, rows},
        counts.data(), logits.data() + at * net.classes, nullptr);
  }
  check(cudaDeviceSynchronize(), "run");
  return {logits.download(), counts.download()};
}

std::vector<double> noisy_image(const FoldedResNet& net, const float* x, int item, int sample,
                                float sigma) {
  std::vector<double> image(kImageSize);
  for (int quad = 0; quad < kImageSize / 4; ++quad) {
    const auto words = fedsmooth::philox(kKey, quad, sample, item, 0);
    float e[4];
    fedsmooth::normal_pair(words.v[0], words.v[1], e[0], e[1]);
    fedsmooth::normal_pair(words.v[2], words.v[3], e[2], e[3]);
    for (int j = 0; j < 4; ++j) {
      const int i = 4 * quad + j, c = i / 1024;
      image[i] = (double{x[i]} + double{sigma} * e[j] - net.mean[c]) / net.sd[c];
    }
  }
  return image;
}

double distance(const std::vector<double>& reference, const float* logits) {
  double off = 0, size = 0;
  for (size_t k = 0; k < reference.size(); ++k) {
    off += (reference[k] - logits[k]) * (reference[k] - logits[k]);
    size += reference[k] * reference[k];
  }
  return std::sqrt(off / size);
}

template <class Each>
void in_threads(int count, const Each& each) {
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (int j; (j = next++) < count;) each(j);
    });
  }
  for (std::thread& t : threads) t.join();
}

int lowest_largest(const float* logits, int classes) {
  return static_cast<int>(std::max_element(logits, logits + classes) - logits);
}

bool check_network(int n, bool project) {
  const FoldedResNet net = random_network(n, project, 7 + n);
  const float sigma = 0.25f;
  const std::vector<float> images = random_images(3, 5);
  Voter voter(net, 64);
  const Result all = run(voter, net, images, {{0, 17}, {1, 14}, {2, 9}}, 64, 0, sigma);
  // Every row against the reference.
  constexpr int kRows = 40;
  std::vector<double> exact(kRows), alike(kRows);
  in_threads(2 * kRows, [&](int job) {
    const int row = job / 2, image = row < 17 ? 0 : row < 31 ? 1 : 2;
    const int sample = row - (image == 0 ? 0 : image == 1 ? 17 : 31);
    const Rounding rounding = job % 2 ? Rounding::kAsGpu : Rounding::kNone;
    const std::vector<double> reference = classify(
        net, noisy_image(net, images.data() + image * kImageSize, image, sample, sigma), rounding);
    (job % 2 ? alike : exact)[row] = distance(reference, all.logits.data() + row * net.classes);
  });
  // The votes are the logits' largest.
  std::vector<int> votes(3 * net.classes);
  for (int row = 0; row < kRows; ++row) {
    const int image = row < 17 ? 0 : row < 31 ? 1 : 2;
    ++votes[image * net.classes +
            lowest_largest(all.logits.data() + row * net.classes, net.classes)];
  }
  // Image 1's copies at other places, with other neighbours, in other batches.
  bool same = votes == all.counts;
  const Result other = run(voter, net, images, {{2, 3}, {1, 14}}, 5, 1, sigma);
  const size_t bytes = 14 * net.classes * sizeof(float);
  const bool bits = memcmp(other.logits.data() + 3 * net.classes,
                           all.logits.data() + 17 * net.classes, bytes) == 0;
  const auto worst = [](const std::vector<double>& d) {
    return *std::max_element(d.begin(), d.end());
  };
  const bool close = worst(exact) < (n > 5 ? 3e-2 : 1e-2) && worst(alike) < (n > 5 ? 3e-2 : 1e-2);
  double mean_exact = 0, mean_alike = 0;
  for (int i = 0; i < kRows; ++i) {
    mean_exact += exact[i] / kRows;
    mean_alike += alike[i] / kRows;
  }
  printf(
      "check resnet%-3d option %c: error mean %.2e worst %.2e; same rounding %.2e worst %.2e; "
      "votes %s; bits %s; logits[0..2] %.3f %.3f %.3f  %s\n",
      6 * n + 2, project ? 'B' : 'A', mean_exact, worst(exact), mean_alike, worst(alike),
      same ? "equal" : "DIFFER", bits ? "equal" : "DIFFER", all.logits[0], all.logits[1],
      all.logits[2], close && same && bits ? "ok" : "FAILED");
  fflush(stdout);
  return close && same && bits;
}

// Multiply-adds of an image, as convolutions, for each stage with its way into the next.
void stage_work(int n, bool project, double (&work)[3]) {
  for (int stage = 0; stage < 3; ++stage) {
    const double same = 9.0 * 16 * 16 * 1024;  // equal in all stages
    work[stage] = same * (stage == 0 ? 2 * n : 2 * n - 1);
    if (stage == 0) work[0] += 27.0 * 16 * 1024;
    if (stage < 2) work[stage] += same / 2 * (project ? 1 + 1.0 / 9 : 1);
  }
}

float median_ms(const std::vector<std::pair<cudaEvent_t, cudaEvent_t>>& events) {
  std::vector<float> ms;
  for (const auto& [begin, end] : events) {
    ms.push_back(0);
    check(cudaEventElapsedTime(&ms.back(), begin, end), "elapsed");
  }
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

float time_passes(Voter& voter, Rows rows, int* counts, int stages, int repeats) {
  std::vector<std::pair<cudaEvent_t, cudaEvent_t>> events(repeats);
  for (int i = -2; i < repeats; ++i) {
    if (i >= 0) {
      check(cudaEventCreate(&events[i].first), "event");
      check(cudaEventCreate(&events[i].second), "event");
      check(cudaEventRecord(events[i].first), "record");
    }
    rows.begin = int64_t{i + 2} * rows.rows;  // fresh noise
    voter.enqueue(rows, counts, nullptr, nullptr, stages);
    if (i >= 0) check(cudaEventRecord(events[i].second), "record");
  }
  check(cudaDeviceSynchronize(), "passes");
  const float ms = median_ms(events);
  for (auto& [begin, end] : events) {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
  return ms;
}

// Two passes at a time, on streams of their own: one's end overlaps the other's beginning.
float time_two_streams(const FoldedResNet& net, Rows rows, int* counts, int passes) {
  Voter voters[2] = {{net, rows.rows}, {net, rows.rows}};
  cudaStream_t streams[2];
  for (cudaStream_t& s : streams)
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
  cudaEvent_t begin, end[2];
  for (cudaEvent_t* e : {&begin, &end[0], &end[1]}) check(cudaEventCreate(e), "event");
  for (int round = 0; round < 2; ++round) {  // the first warms up
    check(cudaDeviceSynchronize(), "streams");
    check(cudaEventRecord(begin, streams[0]), "record");
    check(cudaStreamWaitEvent(streams[1], begin, 0), "wait");
    for (int i = 0; i < passes; ++i) {
      rows.begin += rows.rows;
      voters[i % 2].enqueue(rows, counts, nullptr, streams[i % 2]);
    }
    for (int i = 0; i < 2; ++i) check(cudaEventRecord(end[i], streams[i]), "record");
  }
  check(cudaDeviceSynchronize(), "streams");
  float ms[2];
  for (int i = 0; i < 2; ++i) check(cudaEventElapsedTime(&ms[i], begin, end[i]), "elapsed");
  for (cudaStream_t s : streams) cudaStreamDestroy(s);
  for (cudaEvent_t e : {begin, end[0], end[1]}) cudaEventDestroy(e);
  return std::max(ms[0], ms[1]) / passes;
}

// Passes without a pause for `seconds`: what is left when the card is warm and at its power limit.
float time_sustained(Voter& voter, Rows rows, int* counts, float pass_ms, float seconds) {
  const int passes = static_cast<int>(seconds * 1000 / pass_ms);
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  check(cudaEventRecord(begin), "record");
  for (int i = 0; i < passes; ++i) {
    rows.begin += rows.rows;
    voter.enqueue(rows, counts, nullptr, nullptr);
  }
  check(cudaEventRecord(end), "record");
  check(cudaEventSynchronize(end), "sustained");
  float ms;
  check(cudaEventElapsedTime(&ms, begin, end), "elapsed");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ms / passes;
}

void time_network(int n, bool project, int rows_at_once, int repeats) {
  const FoldedResNet net = random_network(n, project, 11);
  Voter voter(net, rows_at_once);
  const Array<float> x(random_images(1, 3));
  const Array<Copies> copies({{kKey, 0, 0, 0.25f, 0}});
  const Array<int> counts(std::vector<int>(net.classes));
  const Rows rows{copies.data(), 1, x.data(), 0, int64_t{1} << 40, rows_at_once};
  double work[3];
  stage_work(n, project, work);
  const double all = work[0] + work[1] + work[2];
  const float ms = time_passes(voter, rows, counts.data(), 7, repeats);
  const float again = time_passes(voter, rows, counts.data(), 7, repeats);
  printf("resnet%-3d %c rows %d: %.3f M votes/s (again %.3f), %.0f TFLOP/s |", 6 * n + 2,
         project ? 'B' : 'A', rows_at_once, rows_at_once / ms * 1e-3, rows_at_once / again * 1e-3,
         2 * all * rows_at_once / ms * 1e-9);
  for (int stage = 0; stage < 3; ++stage) {
    const float part = time_passes(voter, rows, counts.data(), 1 << stage, repeats);
    printf(" stage %d %.3f ms %.0f TFLOP/s", stage + 1, part,
           2 * work[stage] * rows_at_once / part * 1e-9);
  }
  if (repeats > 1) {
    const float sustained = time_sustained(voter, rows, counts.data(), ms, 3);
    const float two = time_two_streams(net, rows, counts.data(), 2 * repeats);
    printf(" | sustained 3 s %.3f M, two streams %.3f M", rows_at_once / sustained * 1e-3,
           rows_at_once / two * 1e-3);
  }
  printf("\n");
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  constexpr int kRows = 132 * 72;  // whole waves of every stage
  for (int i = 1; i < argc; ++i) {
    const std::string what = argv[i];
    if (what == "small") {
      if (!check_network(1, true)) return 1;
    } else if (what == "check") {
      bool ok = true;
      for (const int n : {1, 3, 5, 18}) ok = check_network(n, true) && ok;
      ok = check_network(3, false) && ok;
      if (!ok) return 1;
    } else if (what == "time") {
      time_network(3, true, kRows, 30);
      time_network(3, false, kRows, 30);
      time_network(5, true, kRows, 20);
      time_network(18, true, kRows, 10);
      time_network(18, false, kRows, 10);
    } else if (what == "profile") {
      time_network((atoi(argv[++i]) - 2) / 6, true, 132 * 24, 1);
    }
  }
} catch (const std::exception& e) {
  fprintf(stderr, "%s\n", e.what());
  return 1;
}
