#include "fedsmooth/engine/cuda/vote_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fedsmooth/base/check.h"
#include "fedsmooth/smoothing/exact_noise.h"

namespace fedsmooth {
namespace {

static_assert(ExactCells::kMargin == ExactNoise::kMargin);

// Tables of exact noise on the device.
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

class DeviceSampler : public Sampler {
 public:
  // With exact noise, unless it is null.
  DeviceSampler(const BaseClassifier& f, std::unique_ptr<VotePass> pass, Stop stopped,
                std::shared_ptr<const ExactNoise> exact = nullptr)
      : Sampler(f), pass_(std::move(pass)), stopped_(std::move(stopped)), exact_(std::move(exact)) {
    if (exact_) cells_.emplace(*exact_);
  }

  std::vector<Votes> count_all(const std::vector<VoteRequest>& requests) override {
    const int64_t classes = pass_->classes();
    const bool held = !requests.empty() && requests.front().held >= 0;
    std::vector<NoisyCopies> copies;
    NoisyRows rows;
    for (size_t i = 0; i < requests.size(); ++i) {
      const VoteRequest& r = requests[i];
      fedsmooth::check(r.held < 0 ? !held : is_held(r), "count_all: image {} is not held", r.held);
      fedsmooth::check(!exact_ || r.sigma == exact_->sigma(), "exact noise of sigma {}", r.sigma);
      copies.push_back({r.stream.key.value, r.stream.item, r.stream.client,
                        static_cast<float>(r.sigma), static_cast<uint32_t>(r.first),
                        static_cast<int32_t>(held ? r.held : i), rows.total});
      rows.total += r.n;
    }
    if (!held) take_images(requests);
    if (exact_) rows.exact = cells_->view();
    fill(copies_, copies);
    fill(counts_, std::vector<VoteCounter>(requests.size() * classes));
    check_cuda(cudaStreamSynchronize(nullptr), "count_all");
    rows.copies = copies_.data();
    rows.requests = static_cast<int>(requests.size());
    rows.x = images_.data();
    rows.image_size = pass_->image_size();
    rows.area = pass_->image_area();
    rows.rows = pass_->batch();
    pass_->prepare(requests);
    for (; rows.begin < rows.total; rows.begin += rows.rows) {
      if (stopped_ && stopped_()) throw Interrupted{};
      pass_->vote(rows, counts_.data());
    }
    const std::vector<VoteCounter> found = counts_.download(pass_->launches().stream());
    std::vector<Votes> votes;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto first = found.begin() + static_cast<int64_t>(i) * classes;
      votes.emplace_back(first, first + classes);
    }
    return votes;
  }

  void hold(const std::vector<Array>& images) override {
    upload(images);
    held_ = images;
  }

  Votes count(const VoteRequest& request) override { return count_all({request})[0]; }
  int64_t requests_at_once(int64_t n) const override {
    return std::clamp<int64_t>(kVotesAtOnce / n, 1, kRequestsAtOnce);
  }
  int64_t images_at_once() const override { return kImagesAtOnce; }

 protected:
  Array evaluate(const Array& images) override { return pass_->classify(pass_->upload(images)); }

  // Uploading a batch takes as long as a hundred thousand votes.
  Array evaluate_again(const FunctionCheck& check) override {
    if (checked_.size() == 0) checked_ = pass_->upload(check.inputs);
    return pass_->classify(checked_);
  }

 private:
  // Enough that the last batch hardly counts; few enough that an interruption loses little.
  static constexpr int64_t kVotesAtOnce = 1'600'000, kRequestsAtOnce = 256;
  // The twenty votes of each between two early looks then fill some ten batches.
  static constexpr int64_t kImagesAtOnce = 4096;

  void take_images(const std::vector<VoteRequest>& requests) {
    std::vector<Array> images;
    for (const VoteRequest& r : requests) images.push_back(r.x);
    upload(images);
    held_.clear();
  }

  void upload(const std::vector<Array>& images) {
    std::vector<float> pixels;
    for (const Array& x : images) {
      fedsmooth::check(x.count() == pass_->image_size(), "an image of [{}]",
                       fmt::join(x.sizes(), ", "));
      if (exact_) ExactNoise::check_bytes(x);
      pixels.insert(pixels.end(), x.floats(), x.floats() + x.count());
    }
    fill(images_, pixels);
    check_cuda(cudaStreamSynchronize(nullptr), "images");
    pass_->take_images(images_.data(), static_cast<int>(images.size()));
  }

  bool is_held(const VoteRequest& r) const {
    return r.held < std::ssize(held_) && held_[r.held].data() == r.x.data();
  }

  // Keeps the memory: giving it back would wait for whatever else the GPU does.
  template <typename T>
  static void fill(DeviceArray<T>& array, const std::vector<T>& values) {
    const auto count = static_cast<int64_t>(values.size());
    if (array.size() < count) array = DeviceArray<T>(count);
    array.upload(values.data(), count, nullptr);
  }

  std::unique_ptr<VotePass> pass_;
  Stop stopped_;
  std::shared_ptr<const ExactNoise> exact_;
  std::optional<DeviceCells> cells_;
  DeviceArray<NoisyCopies> copies_;
  DeviceArray<float> images_;
  std::vector<Array> held_;  // what images_ holds for requests to come, if anything
  DeviceArray<VoteCounter> counts_;
  DeviceArray<float> checked_;  // the inputs of check()
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

BaseClassifier classifier_by(const std::function<std::unique_ptr<VotePass>()>& make, int classes,
                             int batch, const std::string& description) {
  BaseClassifier f;
  f.make = [make]() -> Classifier {
    const std::shared_ptr<VotePass> pass = make();
    return [pass](const Array& images) { return pass->classify(pass->upload(images)); };
  };
  f.classes = classes;
  f.batch = batch;
  f.description = description;
  f.sampler = [make, f](Stop stopped) {
    return std::make_unique<DeviceSampler>(f, make(), std::move(stopped));
  };
  f.exact_sampler = [make, f](std::shared_ptr<const ExactNoise> noise, Stop stopped) {
    BaseClassifier exact = f;
    exact.noise_kind = NoiseKind::kExact;
    return std::make_unique<DeviceSampler>(exact, make(), std::move(stopped), std::move(noise));
  };
  return f;
}

}  // namespace fedsmooth
