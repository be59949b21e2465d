#include "fedsmooth/engine/cuda/vote_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace {

class DeviceSampler : public Sampler {
 public:
  DeviceSampler(const BaseClassifier& f, std::unique_ptr<VotePass> pass,
                Stop stopped)
      : Sampler(f), pass_(std::move(pass)), stopped_(std::move(stopped)) {}

  std::vector<Votes> count_all(const std::vector<VoteRequest>& requests) override {
    const int size = pass_->image_size();
    const int64_t classes = pass_->classes();
    std::vector<NoisyCopies> copies;
    std::vector<float> images;
    NoisyRows rows;
    for (const VoteRequest& r : requests) {
      fedsmooth::check(r.x.count() == size, "count_all: an image of [{}]",
                       fmt::join(r.x.sizes(), ", "));
      images.insert(images.end(), r.x.floats(), r.x.floats() + size);
      copies.push_back({r.stream.key.value, r.stream.item, r.stream.client,
                        static_cast<float>(r.sigma), rows.total});
      rows.total += r.n;
    }
    fill(copies_, copies);
    fill(images_, images);
    fill(counts_, std::vector<int>(requests.size() * classes));
    check_cuda(cudaStreamSynchronize(nullptr), "count_all");
    rows.copies = copies_.data();
    rows.images = static_cast<int>(requests.size());
    rows.x = images_.data();
    rows.image_size = size;
    rows.area = pass_->image_area();
    rows.rows = pass_->batch();
    pass_->prepare(requests, images_.data());
    for (; rows.begin < rows.total; rows.begin += rows.rows) {
      if (stopped_ && stopped_()) throw Interrupted{};
      pass_->vote(rows, counts_.data());
    }
    const std::vector<int> found = counts_.download(pass_->launches().stream());
    std::vector<Votes> votes;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto first = found.begin() + static_cast<int64_t>(i) * classes;
      votes.emplace_back(first, first + classes);
    }
    return votes;
  }

  Votes count(const VoteRequest& request) override { return count_all({request})[0]; }
  int64_t requests_at_once(int64_t n) const override {
    return std::clamp<int64_t>(kVotesAtOnce / n, 1, kRequestsAtOnce);
  }

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

  // Keeps the memory: giving it back would wait for whatever else the GPU does.
  template <typename T>
  static void fill(DeviceArray<T>& array, const std::vector<T>& values) {
    const auto count = static_cast<int64_t>(values.size());
    if (array.size() < count) array = DeviceArray<T>(count);
    array.upload(values.data(), count, nullptr);
  }

  std::unique_ptr<VotePass> pass_;
  Stop stopped_;
  DeviceArray<NoisyCopies> copies_;
  DeviceArray<float> images_;
  DeviceArray<int> counts_;
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
  return f;
}

}  // namespace fedsmooth
