#include "fedsmooth/engine/cuda/wave.h"

#include <algorithm>

#include "fedsmooth/federated/local_step.h"

namespace fedsmooth {
namespace {

constexpr int kFewClients = 32;  // waves of so few clients do not fill a GPU

WaveShape shape_of(const LocalTask& task, const DeviceNetwork& device, int clients,
                   int64_t copies) {
  const auto batch = static_cast<int>(task.local.batch);
  const auto noises = static_cast<int>(copies);
  const auto [channels, height, width] = device.graph.input;
  return {clients,
          batch,
          noises,
          device.rows_for(batch * noises),
          static_cast<int>(channels),
          static_cast<int>(height),
          static_cast<int>(width),
          static_cast<int>(channels * height * width),
          device.graph.classes,
          device.padded_classes()};
}

}  // namespace

Wave::Wave(const LocalTask& task, const DeviceNetwork& device, const DeviceData& data,
           Precision precision, int clients, Use use)
    : task_(task),
      device_(device),
      data_(data),
      precision_(precision),
      shape_(shape_of(task, device, clients, noises_of(task))),
      scored_(shape_of(task, device, clients, batched_copies_of(task))),
      launches_(/*urgent=*/clients <= kFewClients),
      passes_(device.make_passes(precision, clients, scored_.rows, /*gradients=*/true)) {
  const int64_t batch = shape_.batch, noises = shape_.noises;
  const bool moves_noises = noise_ascent(task).steps > 0;
  const bool ascends = examples() == BatchedExamples::kMixed || moves_noises || attacked();
  if (ascends && shape_.rows != scored_.rows) {
    ascent_ = device.make_passes(precision, clients, shape_.rows, /*gradients=*/true);
  }
  const int64_t n = clients, rows = shape_.rows, images = n * batch * shape_.image_size;
  settings_ = DeviceArray<ClientSettings>(n);
  augment_keys_ = DeviceArray<uint64_t>(n);
  dropout_keys_ = DeviceArray<uint64_t>(n);
  chosen_ = DeviceArray<int>(n * task.local.steps * batch);
  step_ = DeviceArray<int>(1);
  y_ = DeviceArray<int>(n * batch);
  usable_ = DeviceArray<int>(n);
  x_ = DeviceArray<float>(images);
  x_adv_ = DeviceArray<float>(images);
  if (objective_of(task.method).adds_noise) noise_ = DeviceArray<float>(images * noises);
  probability_ = DeviceArray<float>(n * rows);
  baseline_ = DeviceArray<float>(n * rows);
  before_ = DeviceArray<float>(n * batch);
  after_ = DeviceArray<float>(n * batch);
  perturbation_ = DeviceArray<float>(n * batch);
  score_weights_ = DeviceArray<ScoreWeights<float>>(n);
  score_room_ = DeviceArray<float>(n * batch * score_room(scored_));
  flips_ = DeviceArray<uint8_t>(n);
  if (examples() == BatchedExamples::kMixed) mix_ = DeviceArray<float>(n * batch);
  if (examples() == BatchedExamples::kMoved) {
    draws_ = DeviceArray<float>(n * batch);
    targets_ = DeviceArray<float>(chosen_.size() * shape_.classes);
  }
  if (mix_.size() > 0 || draws_.size() > 0) mixing_ = DeviceArray<MixSettings>(n);
  if (moves_noises) {
    moved_ = DeviceArray<float>(images * noises);
    wrong_ = DeviceArray<uint8_t>(n * rows);
  }
  terms_ = DeviceArray<Terms>(n);
  if (task.local.calibrate) offsets_ = DeviceArray<float>(n * shape_.padded_classes);
  shares_ = DeviceArray<double>(n);
  global_ = DeviceArray<float>(device.positions.size());
  vector_ = DeviceArray<float>(device.graph.size);
  weights_ = DeviceArray<float>(n * device.graph.size);
  velocity_ = DeviceArray<float>(n * device.graph.size);
  if (device.working_weights && precision == Precision::kBfloat16) {
    working_ = DeviceArray<uint8_t>(n * device.graph.size * 2);
  }
  if (task.local.decay < 1) rates_ = DeviceArray<float>(n * task.local.steps);
  if (task.local.mu > 0) global_of_each_ = DeviceArray<float>(n * device.graph.size);
  std::vector<int> positions = device.positions.download(launches_.stream());
  const auto is_trained = [&](int position) { return position < device.graph.trained; };
  statistics_ = positions.end() - std::ranges::stable_partition(positions, is_trained).begin();
  sum_positions_ = DeviceArray<int>(positions);
  sums_ = DeviceArray<long long>(device.graph.trained);
  sum_ = DeviceArray<long long>(global_.size() + (kWideWords - 1) * statistics_);
  values_ = HostArray<float>(global_.size());
  host_sum_ = HostArray<long long>(sum_.size());
  if (use == Use::kCounted) return;
  graph_ = capture(/*first=*/false);
  if (records_apart()) first_graph_ = capture(/*first=*/true);
}

Wave::~Wave() {
  for (cudaGraphExec_t graph : {first_graph_, graph_}) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
}

int64_t Wave::bytes(const LocalTask& task, const DeviceNetwork& device, const DeviceData& data,
                    Precision precision, int clients) {
  const AllocationCount count;
  const Wave wave(task, device, data, precision, clients, Use::kCounted);
  return count.bytes();
}

cudaGraphExec_t Wave::capture(bool first) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t captured = nullptr;
  check_cuda(cudaStreamBeginCapture(launches_.stream(), cudaStreamCaptureModeThreadLocal),
             "capture");
  enqueue_step(first);
  check_cuda(cudaStreamEndCapture(launches_.stream(), &graph), "capture");
  check_cuda(cudaGraphInstantiate(&captured, graph, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(graph);
  return captured;
}

std::map<std::string, PhaseCost> Wave::measure_step(const std::vector<WavePart>& parts) {
  load_clients(parts);
  enqueue_step(/*first=*/false);  // warms up
  return launches_.measure([&] { enqueue_step(/*first=*/false); });
}

void Wave::run(const std::vector<WavePart>& parts) {
  load_clients(parts);
  for (int64_t i = 0; i < task_.local.steps; ++i) {
    const bool first = i == 0 && first_graph_ != nullptr;
    check_cuda(cudaGraphLaunch(first ? first_graph_ : graph_, launches_.stream()),
               "cudaGraphLaunch");
  }
  add_results(parts);
}

}  // namespace fedsmooth
