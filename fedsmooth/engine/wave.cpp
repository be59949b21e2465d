#include "fedsmooth/engine/wave.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fedsmooth {
namespace {

constexpr int kRowTile = 64;  // rows that a product takes at least

// What a captured step depends on, beyond the numbers that lie on the device.
auto steps_of(const LocalTask& task) {
  return std::make_tuple(task.method, task.attack.estimator, task.attack.steps,
                         task.attack.normalize, task.attack.epsilon > 0, task.smoothing.m,
                         task.local.steps, task.local.batch, task.local.passes, task.augment);
}

}  // namespace

Wave::Wave(const LocalTask& task, const DevicePlan& device, const DeviceData& data,
           Precision precision, int clients)
    : task_(task),
      device_(device),
      data_(data),
      precision_(precision),
      value_size_(precision == Precision::kBfloat16 ? 2 : 4) {
  const BatchedPlan& plan = device.plan;
  const auto batch = static_cast<int>(task.local.batch);
  const int noises = adds_noise(task.method) ? static_cast<int>(task.smoothing.m) : 1;
  const auto [channels, height, width] = plan.input;
  shape_ = {clients,
            batch,
            noises,
            (batch * noises + kRowTile - 1) / kRowTile * kRowTile,
            static_cast<int>(channels),
            static_cast<int>(height),
            static_cast<int>(width),
            static_cast<int>(channels * height * width),
            plan.classes,
            plan.stages.back().out.channels};
  const int64_t n = clients, rows = shape_.rows, images = n * batch * shape_.image_size;
  settings_ = DeviceArray<ClientSettings>(n);
  augment_keys_ = DeviceArray<uint64_t>(n);
  chosen_ = DeviceArray<int>(n * task.local.steps * batch);
  step_ = DeviceArray<int>(1);
  y_ = DeviceArray<int>(n * batch);
  usable_ = DeviceArray<int>(n);
  x_ = DeviceArray<float>(images);
  x_adv_ = DeviceArray<float>(images);
  if (adds_noise(task.method)) noise_ = DeviceArray<float>(images * noises);
  logits_ = DeviceArray<float>(n * rows * shape_.padded_classes);
  probability_ = DeviceArray<float>(n * rows);
  baseline_ = DeviceArray<float>(n * rows);
  before_ = DeviceArray<float>(n * batch);
  after_ = DeviceArray<float>(n * batch);
  perturbation_ = DeviceArray<float>(n * batch);
  loss_ = DeviceArray<double>(n);
  shares_ = DeviceArray<double>(n);
  global_ = DeviceArray<float>(static_cast<int64_t>(plan.positions.size()));
  vector_ = DeviceArray<float>(plan.size);
  weights_ = DeviceArray<float>(n * plan.size);
  velocity_ = DeviceArray<float>(n * plan.size);
  if (precision == Precision::kBfloat16) working_ = DeviceArray<uint8_t>(n * plan.size * 2);
  const auto map_bytes = [&](const BatchedMap& map) {
    return n * rows * map.row_size() * value_size_;
  };
  input_ = DeviceArray<uint8_t>(map_bytes(plan.stages.front().in));
  input_gradient_ = DeviceArray<uint8_t>(map_bytes(plan.stages.front().in));
  for (const BatchedStage& stage : plan.stages) {
    maps_.emplace_back(map_bytes(stage.out));
    gradients_.emplace_back(map_bytes(stage.out));
  }
  sums_ = DeviceArray<long long>(plan.size);
  sum_ = DeviceArray<long long>(global_.size());
  values_ = HostArray<float>(global_.size());
  host_sum_ = HostArray<long long>(global_.size());
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  // The loss writes only rows of images and real classes; the rest stays zero.
  gradients_.back().clear(stream_);
  capture();
}

Wave::~Wave() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

int64_t Wave::bytes_per_client(const LocalTask& task, const BatchedPlan& plan,
                               Precision precision) {
  const int64_t value = precision == Precision::kBfloat16 ? 2 : 4;
  const int64_t noises = adds_noise(task.method) ? task.smoothing.m : 1;
  const int64_t rows = (task.local.batch * noises + kRowTile - 1) / kRowTile * kRowTile;
  int64_t maps = 2 * plan.stages.front().in.row_size();
  for (const BatchedStage& stage : plan.stages) maps += 2 * stage.out.row_size();
  const int64_t image = plan.input[0] * plan.input[1] * plan.input[2];
  return plan.size * (8 + (value == 2 ? 2 : 0)) + rows * maps * value +
         task.local.batch * image * 4 * (2 + noises) + task.local.steps * task.local.batch * 4 +
         (1 << 20);
}

bool Wave::fits(const LocalTask& task) const { return steps_of(task) == steps_of(task_); }

void Wave::capture() {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
  enqueue_step();
  check_cuda(cudaStreamEndCapture(stream_, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(graph);
}

void Wave::load_clients(const LocalTask& task, const Weights& global, const Cohort& cohort,
                        size_t first, size_t count, int64_t t) {
  const AttackOptions& attack = task.attack;
  const auto round = static_cast<uint64_t>(t);
  std::vector<ClientSettings> settings(shape_.clients);
  std::vector<uint64_t> keys(shape_.clients, make_key(task.seed, Purpose::kAugment, round).value);
  std::vector<int> chosen(chosen_.size(), 0);
  std::vector<double> shares(shape_.clients, 0.0);
  for (size_t i = 0; i < count; ++i) {
    const int64_t k = cohort.clients[first + i];
    const std::vector<int64_t>& images = cohort.images[first + i];
    settings[i] = {make_key(task.seed, Purpose::kTraining, round).value,
                   static_cast<uint32_t>(k),
                   static_cast<float>(task.smoothing.sigma),
                   static_cast<float>(attack.epsilon),
                   static_cast<float>(step_size(attack)),
                   static_cast<float>(task.local.learning_rate),
                   static_cast<float>(task.local.momentum),
                   static_cast<float>(task.local.weight_decay)};
    const int64_t taken = task.local.steps * task.local.batch;
    const auto order = shuffle_images(images, taken, task.seed, k, t);
    std::copy(order.begin(), order.end(), chosen.begin() + static_cast<int64_t>(i) * taken);
    shares[i] = static_cast<double>(images.size()) / static_cast<double>(cohort.total) *
                FixedPointSum::kUnit;
  }
  settings_.upload(settings.data(), settings_.size(), stream_);
  augment_keys_.upload(keys.data(), augment_keys_.size(), stream_);
  chosen_.upload(chosen.data(), chosen_.size(), stream_);
  shares_.upload(shares.data(), shares_.size(), stream_);
  float* value = values_.data();
  for (const Tensor& w : global) {
    const Tensor dense = w.contiguous();
    value = std::copy_n(dense.data_ptr<float>(), dense.numel(), value);
  }
  global_.upload(values_.data(), global_.size(), stream_);
  step_.clear(stream_);
  loss_.clear(stream_);
  const std::vector<int> usable(shape_.clients, 1);
  usable_.upload(usable.data(), usable_.size(), stream_);
  const BatchedPlan& plan = device_.plan;
  check_cuda(spread_weights({shape_.clients, plan.size, global_.size(), global_.data(),
                             device_.positions.data(), vector_.data(), weights_.data(),
                             velocity_.data(), working_.data()},
                            stream_),
             "spread_weights");
  check_cuda(cudaStreamSynchronize(stream_), "load_clients");
}

void Wave::add_results(const LocalTask& task, const Cohort& cohort, size_t first, size_t count,
                       RoundResult& result) {
  const auto usable = usable_.download(stream_);
  sum_.download(host_sum_.data(), stream_);
  const auto loss = loss_.download(stream_);
  const auto before = before_.download(stream_), after = after_.download(stream_);
  const auto perturbation = perturbation_.download(stream_);
  int64_t share = 0, dropped = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!usable[i]) {
      ++dropped;
      continue;
    }
    share += std::llrint(static_cast<double>(cohort.images[first + i].size()) /
                         static_cast<double>(cohort.total) * FixedPointSum::kUnit);
    Telemetry telemetry;
    telemetry.loss = loss[i];
    telemetry.steps = task.local.steps * task.local.passes;
    for (int64_t b = 0; attacked() && b < shape_.batch; ++b) {
      const size_t at = i * shape_.batch + b;
      telemetry.add_attack(perturbation[at] / task.attack.epsilon, before[at], after[at]);
    }
    result.telemetry.add(telemetry);
  }
  result.sum.add(host_sum_.data(), host_sum_.size(), share, dropped);
}

void Wave::run(const LocalTask& task, const Weights& global, const Cohort& cohort, size_t first,
               size_t count, int64_t t, RoundResult& result) {
  load_clients(task, global, cohort, first, count, t);
  for (int64_t i = 0; i < task.local.steps; ++i) {
    check_cuda(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch");
  }
  check_cuda(sum_weights({static_cast<int>(count), device_.plan.size,
                          static_cast<int64_t>(device_.plan.positions.size()), weights_.data(),
                          device_.positions.data(), shares_.data(), FixedPointSum::kLargest,
                          usable_.data(), sums_.data(), sum_.data()},
                         stream_),
             "sum_weights");
  add_results(task, cohort, first, count, result);
}

}  // namespace fedsmooth
