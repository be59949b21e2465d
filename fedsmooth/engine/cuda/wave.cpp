#include "fedsmooth/engine/cuda/wave.h"

#include <algorithm>
#include <tuple>

#include "fedsmooth/engine/cuda/kernels/batched_weights.h"
#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/smoothmix.h"

namespace fedsmooth {
namespace {

constexpr int kFewClients = 32;  // do not fill a GPU

// What a captured step depends on, beyond the numbers that lie on the device.
auto steps_of(const LocalTask& task) {
  return std::make_tuple(task.method, task.objective.examples, task.attack.estimator,
                         task.attack.steps, task.attack.normalize, task.attack.epsilon > 0,
                         task.objective.steps, noise_ascent(task).steps, task.smoothing.m,
                         task.local.steps, task.local.batch, task.local.passes,
                         task.local.calibrate, task.augment, task.local.mu > 0);
}

ClientSettings settings_of(const Round& round, int64_t k) {
  const LocalTask& task = round.task;
  const bool mixes = objective_of(task.method).on_gpu->examples == GpuExamples::kMixed;
  const AttackOptions ascent = mixes ? mix_ascent(task) : task.attack;
  const NoiseAscent of_noise = noise_ascent(task);
  return {make_key(task.seed, Purpose::kTraining, static_cast<uint64_t>(round.t)).value,
          static_cast<uint32_t>(k),
          static_cast<float>(task.smoothing.sigma),
          static_cast<float>(ascent.epsilon),
          static_cast<float>(of_noise.steps > 0 ? of_noise.step_size : step_size(ascent)),
          static_cast<float>(task.local.learning_rate),
          static_cast<float>(task.local.momentum),
          static_cast<float>(task.local.weight_decay),
          static_cast<float>(task.local.mu)};
}

WaveShape shape_of(const LocalTask& task, const DeviceNetwork& device, int clients,
                   int64_t copies) {
  const auto batch = static_cast<int>(task.local.batch);
  const auto noises = static_cast<int>(copies);
  const auto [channels, height, width] = device.input;
  return {clients,
          batch,
          noises,
          device.rows_for(batch * noises),
          static_cast<int>(channels),
          static_cast<int>(height),
          static_cast<int>(width),
          static_cast<int>(channels * height * width),
          device.classes,
          device.padded_classes};
}

}  // namespace

bool same_step(const LocalTask& a, const LocalTask& b) { return steps_of(a) == steps_of(b); }

Wave::Wave(const LocalTask& task, const DeviceNetwork& device, const DeviceData& data,
           Precision precision, int clients)
    : task_(task),
      device_(device),
      data_(data),
      precision_(precision),
      shape_(shape_of(task, device, clients, noises_of(task))),
      scored_(shape_of(task, device, clients, gpu_copies_of(task))),
      launches_(/*urgent=*/clients <= kFewClients),
      passes_(device.make_passes(precision, clients, scored_.rows)) {
  const int64_t batch = shape_.batch, noises = shape_.noises;
  const bool moves_noises = noise_ascent(task).steps > 0;
  const bool ascends = examples() == GpuExamples::kMixed || moves_noises || attacked();
  if (ascends && shape_.rows != scored_.rows) {
    ascent_ = device.make_passes(precision, clients, shape_.rows);
  }
  const int64_t n = clients, rows = shape_.rows, images = n * batch * shape_.image_size;
  settings_ = DeviceArray<ClientSettings>(n);
  augment_keys_ = DeviceArray<uint64_t>(n);
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
  if (examples() == GpuExamples::kMixed) mix_ = DeviceArray<float>(n * batch);
  if (examples() == GpuExamples::kMoved) {
    draws_ = DeviceArray<float>(n * batch);
    targets_ = DeviceArray<float>(chosen_.size() * shape_.classes);
  }
  if (mix_.data() != nullptr || draws_.data() != nullptr) mixing_ = DeviceArray<MixSettings>(n);
  if (moves_noises) {
    moved_ = DeviceArray<float>(images * noises);
    wrong_ = DeviceArray<uint8_t>(n * rows);
  }
  terms_ = DeviceArray<Terms>(n);
  if (task.local.calibrate) offsets_ = DeviceArray<float>(n * shape_.padded_classes);
  shares_ = DeviceArray<double>(n);
  global_ = DeviceArray<float>(device.positions.size());
  vector_ = DeviceArray<float>(device.size);
  weights_ = DeviceArray<float>(n * device.size);
  velocity_ = DeviceArray<float>(n * device.size);
  if (device.working_weights && precision == Precision::kBfloat16) {
    working_ = DeviceArray<uint8_t>(n * device.size * 2);
  }
  if (task.local.mu > 0) global_of_each_ = DeviceArray<float>(n * device.size);
  sums_ = DeviceArray<long long>(device.size);
  sum_ = DeviceArray<long long>(global_.size());
  values_ = HostArray<float>(global_.size());
  host_sum_ = HostArray<long long>(global_.size());
  graph_ = capture(/*first=*/false);
  if (records_apart()) first_graph_ = capture(/*first=*/true);
}

Wave::~Wave() {
  for (cudaGraphExec_t graph : {first_graph_, graph_}) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
}

int64_t Wave::bytes_per_client(const LocalTask& task, const DeviceNetwork& device,
                               Precision precision) {
  const WaveShape shape = shape_of(task, device, 1, noises_of(task));
  const WaveShape scored = shape_of(task, device, 1, gpu_copies_of(task));
  int64_t passes = device.bytes_per_client(scored.rows, precision);
  if (shape.rows != scored.rows) passes += device.bytes_per_client(shape.rows, precision);
  const int64_t per_weight = 8 + (task.local.mu > 0 ? 4 : 0);
  const int64_t noises = shape.noises * (noise_ascent(task).steps > 0 ? 2 : 1);
  const int64_t images = int64_t{shape.batch} * shape.image_size * (2 + noises);
  return device.size * per_weight + passes + images * 4 + shape.batch * score_room(scored) * 4 +
         task.local.steps * task.local.batch * 4 * (1 + shape.classes) + (1 << 20);
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

void Wave::load_clients(const std::vector<WavePart>& parts) {
  const int64_t taken = task_.local.steps * task_.local.batch;
  std::vector<ClientSettings> settings(shape_.clients);
  std::vector<ScoreWeights<float>> weights(shape_.clients);
  std::vector<MixSettings> mixing(shape_.clients);
  std::vector<uint64_t> keys(shape_.clients, 0);
  std::vector<float> offsets(offsets_.size(), 0.0f);
  std::vector<int> chosen(chosen_.size(), 0);
  std::vector<float> targets(targets_.size(), 0.0f);
  std::vector<uint8_t> flips(shape_.clients, 0);
  std::vector<double> shares(shape_.clients, 0.0);
  int64_t place = 0;
  for (const auto& [round, first, count, result] : parts) {
    const LocalTask& task = round.task;
    const auto [lambda, eta, sigma] = score_weights(task);
    const Key mix = make_key(task.seed, Purpose::kObjective, static_cast<uint64_t>(round.t));
    const Key augment = make_key(task.seed, Purpose::kAugment, static_cast<uint64_t>(round.t));
    for (size_t i = first; i < first + count; ++i, ++place) {
      const int64_t k = round.cohort.clients[i];
      settings[place] = settings_of(round, k);
      weights[place] = {static_cast<float>(lambda), static_cast<float>(eta),
                        static_cast<float>(sigma)};
      mixing[place] = {mix.value, static_cast<float>(mix_first_step(task))};
      keys[place] = augment.value;
      if (task.local.calibrate) {
        const std::vector<float> shares = label_offsets(task, k, round.cohort.images[i]);
        std::copy(shares.begin(), shares.end(), offsets.begin() + place * shape_.padded_classes);
      }
      const auto order = choose_images(task, round.cohort.images[i], k, round.t);
      std::copy(order.begin(), order.end(), chosen.begin() + place * taken);
      for (int64_t j = 0; !targets.empty() && j < taken; ++j) {
        std::copy_n(task.teacher.floats() + order[j] * shape_.classes, shape_.classes,
                    targets.begin() + (place * taken + j) * shape_.classes);
      }
      flips[place] = flips_labels(task, k);
      shares[place] = round.cohort.share(i) * FixedPointSum::kUnit;
    }
  }
  settings_.upload(settings.data(), settings_.size(), launches_.stream());
  score_weights_.upload(weights.data(), score_weights_.size(), launches_.stream());
  mixing_.upload(mixing.data(), mixing_.size(), launches_.stream());
  offsets_.upload(offsets.data(), offsets_.size(), launches_.stream());
  augment_keys_.upload(keys.data(), augment_keys_.size(), launches_.stream());
  chosen_.upload(chosen.data(), chosen_.size(), launches_.stream());
  targets_.upload(targets.data(), targets_.size(), launches_.stream());
  flips_.upload(flips.data(), flips_.size(), launches_.stream());
  shares_.upload(shares.data(), shares_.size(), launches_.stream());
  step_.clear(launches_.stream());
  terms_.clear(launches_.stream());
  const std::vector<int> usable(shape_.clients, 1);
  usable_.upload(usable.data(), usable_.size(), launches_.stream());
  place = 0;
  for (const WavePart& part : parts) {
    // Indices that are left over get the last weights: they train too, if for nothing.
    const bool last = &part == &parts.back();
    const auto count = static_cast<int64_t>(part.count);
    load_weights(part.round.global, place, last ? shape_.clients - place : count);
    place += count;
  }
}

// The same weights for clients [place, place + clients).
void Wave::load_weights(const Weights& global, int64_t place, int64_t clients) {
  const int64_t begin = place * device_.size;
  float* value = values_.data();
  for (const Array& w : global) value = std::copy_n(w.floats(), w.count(), value);
  global_.upload(values_.data(), global_.size(), launches_.stream());
  WeightSpread spread;
  spread.clients = static_cast<int>(clients);
  spread.size = device_.size;
  spread.count = global_.size();
  spread.values = global_.data();
  spread.positions = device_.positions.data();
  spread.vector = vector_.data();
  spread.weights = weights_.data() + begin;
  spread.velocity = velocity_.data() + begin;
  spread.working = working_.data() == nullptr ? nullptr : working_.data() + begin * 2;
  spread.global = global_of_each_.data() == nullptr ? nullptr : global_of_each_.data() + begin;
  check_cuda(spread_weights(spread, launches_.stream()), "spread_weights");
  // values_ serves the next part too.
  check_cuda(cudaStreamSynchronize(launches_.stream()), "load_weights");
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
