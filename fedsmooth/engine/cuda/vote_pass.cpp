#include "fedsmooth/engine/cuda/vote_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "fedsmooth/base/check.h"
#include "fedsmooth/smoothing/exact_noise.h"

namespace fedsmooth {
namespace {

static_assert(ExactCells::kMargin == ExactNoise::kMargin);

// Owns the tables of exact noise on the device.
class DeviceCells {
 public:
  explicit DeviceCells(const ExactNoise& noise)
      : edges_(noise.edges()), fine_(noise.fine_edges()), start_(noise.start()) {
    const int32_t end = 255 * noise.reach();
    std::vector<float> values;
    for (int32_t z = -end; z <= end + 255; ++z) values.push_back(static_cast<float>(z) / 255);
    values_ = DeviceArray<float>(values);
    check_cuda(cudaStreamSynchronize(nullptr), "exact noise");
    cells_ = {edges_.data(),
              fine_.data(),
              start_.data(),
              values_.data(),
              static_cast<int32_t>(edges_.size()),
              noise.lowest(),
              noise.reach()};
  }

  const ExactCells& view() const { return cells_; }

 private:
  DeviceArray<uint64_t> edges_, fine_;
  DeviceArray<uint32_t> start_;
  DeviceArray<float> values_;
  ExactCells cells_;
};

// Draws the laws that gpu_law_refusal() does not refuse.
class DeviceSampler : public Sampler {
 public:
  DeviceSampler(const BaseClassifier& f, const NoiseLaw& law, std::unique_ptr<VotePass> pass,
                Stop stopped)
      : Sampler(f, law),
        gpu_(current_gpu()),
        pass_(std::move(pass)),
        stopped_(std::move(stopped)) {}

  std::vector<Votes> count_all(const std::vector<VoteRequest>& requests) override {
    std::vector<Votes> votes;
    for (VotesAndGaps& tally : count_into(begin_tallies(requests.size(), {}), requests)) {
      votes.push_back(std::move(tally.votes));
    }
    return votes;
  }

  std::vector<VotesAndGaps> count_gaps(const std::vector<VoteRequest>& requests,
                                       const std::vector<int64_t>& classes) override {
    return count_into(begin_tallies(requests.size(), classes), requests);
  }

  Votes count(const VoteRequest& request) override { return count_all({request})[0]; }
  int64_t requests_at_once(int64_t n) const override {
    return std::clamp<int64_t>(kVotesAtOnce / n, 1, kRequestsAtOnce);
  }
  int64_t images_at_once() const override { return kImagesAtOnce; }

 protected:
  Array evaluate(const Array& images) override {
    const OnGpu on(gpu_);
    return pass_->classify(pass_->upload(images));
  }

  // Keeps the inputs on the device: uploading a batch takes as long as a hundred thousand votes.
  Array evaluate_again(const FunctionCheck& check) override {
    const OnGpu on(gpu_);
    if (checked_.size() == 0) checked_ = pass_->upload(check.inputs);
    return pass_->classify(checked_);
  }

 private:
  // Enough votes that the last, partly filled batch costs little; few enough that an interruption
  // loses little.
  static constexpr int64_t kVotesAtOnce = 1'600'000, kRequestsAtOnce = 256;
  // Twenty votes for each image, between two early looks, then fill about ten batches.
  static constexpr int64_t kImagesAtOnce = 4096;

  std::vector<VotesAndGaps> count_into(std::vector<VotesAndGaps> tallies,
                                       const std::vector<VoteRequest>& requests) {
    if (requests.empty()) return tallies;
    const OnGpu on(gpu_);
    NoisyRows rows = list_copies(requests);
    const bool with_gaps = !tallies.front().gaps.empty();
    fill(counts_, std::vector<VoteCounter>(requests.size() * classes()));
    if (with_gaps) {
      std::vector<int32_t> gaps_of;
      for (const VotesAndGaps& tally : tallies)
        gaps_of.push_back(static_cast<int32_t>(tally.gaps_of));
      fill(gaps_of_, gaps_of);
      fill(gaps_, std::vector<VoteCounter>(requests.size() * (groups() + 2)));
    }
    check_cuda(cudaStreamSynchronize(nullptr), "count_into");
    for (; rows.begin < rows.total; rows.begin += rows.rows) {
      if (stopped_ && stopped_()) throw Interrupted{};
      vote(rows, with_gaps);
    }
    read_counts(counts_, tallies, &VotesAndGaps::votes);
    if (with_gaps) read_counts(gaps_, tallies, &VotesAndGaps::gaps);
    return tallies;
  }

  // The copies that the requests ask for, from the first one on.
  NoisyRows list_copies(const std::vector<VoteRequest>& requests) {
    const std::vector<int32_t> images = place_images(requests);
    std::vector<NoisyCopies> copies;
    NoisyRows rows;
    for (size_t i = 0; i < requests.size(); ++i) {
      const VoteRequest& r = requests[i];
      copies.push_back({r.stream.key.value, r.stream.item, r.stream.client,
                        static_cast<float>(r.sigma), static_cast<uint32_t>(r.first), images[i],
                        rows.total});
      rows.total += r.n;
    }
    if (draws_exactly()) rows.exact = cells_for(requests);
    fill(copies_, copies);
    rows.copies = copies_.data();
    rows.requests = static_cast<int>(requests.size());
    rows.x = images_.data();
    rows.image_size = pass_->image_size();
    rows.area = pass_->image_area();
    rows.rows = pass_->batch();
    return rows;
  }

  void vote(const NoisyRows& rows, bool with_gaps) {
    if (groups() == 0) return pass_->vote(rows, counts_.data());
    const DeviceLogits logits = pass_->enqueue_copies(rows);
    GroupVoteCount count{rows, logits.values, static_cast<int>(classes()),
                         static_cast<int>(groups()), counts_.data()};
    if (with_gaps) {
      count.gaps_of = gaps_of_.data();
      count.gaps = gaps_.data();
    }
    Launches& launches = pass_->launches();
    launches.add("group votes", count_group_votes(count, launches.stream()));
  }

  // Waits for the counts; each tally's `field` gets its own.
  void read_counts(const DeviceArray<VoteCounter>& counts, std::vector<VotesAndGaps>& tallies,
                   std::vector<int64_t> VotesAndGaps::*field) {
    const std::vector<VoteCounter> found = counts.download(pass_->launches().stream());
    auto next = found.begin();
    for (VotesAndGaps& tally : tallies) {
      std::vector<int64_t>& own = tally.*field;
      std::copy_n(next, own.size(), own.begin());
      next += std::ssize(own);
    }
  }

  bool draws_exactly() const { return &law() == &kExactNoise; }

  // One table serves all copies of a launch.
  const ExactCells& cells_for(const std::vector<VoteRequest>& requests) {
    const double sigma = requests.front().sigma;
    for (const VoteRequest& r : requests) {
      fedsmooth::check(r.sigma == sigma, "exact noise of sigma {} and {} at once", sigma, r.sigma);
    }
    if (!cells_ || cells_sigma_ != sigma) {
      cells_.emplace(ExactNoise(sigma));
      cells_sigma_ = sigma;
    }
    return cells_->view();
  }

  // Returns the index of each request's image among those on the GPU. Uploads the images unless all
  // are there, in this order: the undecided images of a wave are requested many times.
  std::vector<int32_t> place_images(const std::vector<VoteRequest>& requests) {
    const int64_t size = pass_->image_size(), there = std::ssize(pixels_) / size;
    std::vector<int32_t> places;
    int64_t at = 0;
    for (const VoteRequest& r : requests) {
      fedsmooth::check(r.x.count() == size, "an image of [{}]", fmt::join(r.x.sizes(), ", "));
      const auto is_here = [&] {
        return std::memcmp(pixels_.data() + at * size, r.x.floats(), size * sizeof(float)) == 0;
      };
      while (at < there && !is_here()) ++at;
      if (at == there) return upload(requests);
      places.push_back(static_cast<int32_t>(at));
    }
    return places;
  }

  std::vector<int32_t> upload(const std::vector<VoteRequest>& requests) {
    pixels_.clear();
    pixels_.reserve(requests.size() * pass_->image_size());
    for (const VoteRequest& r : requests) {
      if (draws_exactly()) ExactNoise::check_bytes(r.x);
      pixels_.insert(pixels_.end(), r.x.floats(), r.x.floats() + r.x.count());
    }
    fill(images_, pixels_);
    check_cuda(cudaStreamSynchronize(nullptr), "images");
    std::vector<int32_t> places(requests.size());
    std::iota(places.begin(), places.end(), 0);
    return places;
  }

  // Reuses the array's memory: freeing it would wait for all other work on the GPU.
  template <typename T>
  static void fill(DeviceArray<T>& array, const std::vector<T>& values) {
    const auto count = static_cast<int64_t>(values.size());
    if (array.size() < count) array = DeviceArray<T>(count);
    array.upload(values.data(), count, nullptr);
  }

  int gpu_;
  std::unique_ptr<VotePass> pass_;
  Stop stopped_;
  std::optional<DeviceCells> cells_;  // for exact noise with cells_sigma_
  double cells_sigma_ = 0;
  DeviceArray<NoisyCopies> copies_;
  DeviceArray<float> images_;
  std::vector<float> pixels_;  // host copy of images_
  DeviceArray<VoteCounter> counts_, gaps_;
  DeviceArray<int32_t> gaps_of_;  // the class of each request whose gaps are counted
  DeviceArray<float> checked_;    // the inputs of check()
};

}  // namespace

DeviceArray<float> VotePass::upload(const Array& images) {
  check(images.count() == int64_t{batch_} * image_size(), "upload: images [{}]",
        fmt::join(images.sizes(), ", "));
  DeviceArray<float> x(images.count());
  x.upload(images.floats(), x.size(), launches_.stream());
  check_cuda(cudaStreamSynchronize(launches_.stream()), "images");
  return x;
}

Array VotePass::classify(const DeviceArray<float>& x) {
  const DeviceLogits logits = enqueue_images(x.data());
  std::vector<float> rows(int64_t{batch_} * logits.stride);
  launches_.add("logits", cudaMemcpyAsync(rows.data(), logits.values, rows.size() * sizeof(float),
                                          cudaMemcpyDeviceToHost, launches_.stream()));
  check_cuda(cudaStreamSynchronize(launches_.stream()), "logits");
  Array found({batch_, classes_});
  for (int64_t r = 0; r < batch_; ++r) {
    std::copy_n(rows.data() + r * logits.stride, classes_, found.floats() + r * classes_);
  }
  return found;
}

void VotePass::vote(const NoisyRows& rows, VoteCounter* counts) {
  const DeviceLogits logits = enqueue_copies(rows);
  const VoteCount count{rows, logits.values, classes_, logits.stride, counts};
  launches_.add("votes", count_votes(count, launches_.stream()));
}

std::string gpu_law_refusal(const NoiseLaw& law) {
  if (&law == &kFloatNoise || &law == &kExactNoise) return {};
  return fmt::format("noise={}: a GPU draws {} and {} noise only", law.name, kFloatNoise.name,
                     kExactNoise.name);
}

BaseClassifier classifier_by(const VotePasses& passes) {
  const int gpu = current_gpu();
  const MakePass& make = passes.make;
  BaseClassifier f;
  f.make = [make, gpu]() -> Classifier {
    const OnGpu on(gpu);
    const std::shared_ptr<VotePass> pass = make(kFloatNoise);
    return [pass, gpu](const Array& images) {
      const OnGpu on(gpu);
      return pass->classify(pass->upload(images));
    };
  };
  f.classes = passes.classes;
  f.batch = passes.batch;
  f.description = passes.description;
  f.groups = passes.groups;
  f.sampler = [make, gpu, f](const NoiseLaw& law, Stop stopped) {
    const std::string refusal = gpu_law_refusal(law);
    if (!refusal.empty()) throw Error("{}; {} cannot count its votes", refusal, f.description);
    const OnGpu on(gpu);
    return std::make_unique<DeviceSampler>(f, law, make(law), std::move(stopped));
  };
  return f;
}

}  // namespace fedsmooth
