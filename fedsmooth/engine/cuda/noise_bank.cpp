#include "fedsmooth/engine/cuda/noise_bank.h"

namespace fedsmooth {
FirstLayer::FirstLayer(const DeviceModel& model)
    : model_(model),
      pooled_(model.plan().stages.size() > 1 && model.plan().stages[1].pool2x2),
      no_mean_(std::vector<float>(model.plan().mean.size(), 0.0f)) {}

void FirstLayer::multiply(const float* map, int rows, bool bias, float* out,
                          Launches& launches) const {
  MapProduct p;
  p.clients = 1;
  p.rows = rows;
  p.depth = stage().in.channels;
  p.columns = stage().out.channels;
  p.left = map;
  p.left_pixels = stage().in.pixels();
  p.kernel = model_.weights().weights + stage().kernel;
  p.taps = stage().taps;
  p.kernel_client = p.bias_client = model_.plan().size;
  p.pairs = model_.device().by_output.front().view();
  p.out_float = out;
  if (bias && stage().has_bias) p.bias = model_.weights().weights + stage().bias;
  launches.add("bank", multiply_maps(Precision::kFloat32, p, launches.stream()));
}

DeviceArray<float> FirstLayer::of_images(const float* images, int count, Launches& launches) const {
  const int rows = (count + 63) / 64 * 64;
  const DeviceArray<float> map(rows * stage().in.row_size());
  DeviceArray<float> out(rows * row_size());
  InputMap input = model_.input_map(map.data());
  input.first = {images, nullptr, 1};
  launches.add(
      "bank", make_input(Precision::kFloat32, model_.shape(count, rows), input, launches.stream()));
  multiply(map.data(), rows, /*bias=*/true, out.data(), launches);
  check_cuda(cudaStreamSynchronize(launches.stream()), "bank");  // before `map` goes
  return out;
}

void FirstLayer::of_noises(const NoisyRows& noises, float* out, Launches& launches) const {
  const DeviceArray<float> map(noises.rows * stage().in.row_size());
  NoisyRows rows = noises;
  rows.map = model_.input_map(map.data());
  rows.map.mean = no_mean_.data();  // the image's part has it
  launches.add("bank", make_noisy_input(Precision::kFloat32, rows, launches.stream()));
  multiply(map.data(), rows.rows, /*bias=*/false, out, launches);
  check_cuda(cudaStreamSynchronize(launches.stream()), "bank");
}

BankRows FirstLayer::sums() const {
  BankRows sums;
  sums.pixels = stage().out.pixels();
  sums.channels = stage().out.channels;
  sums.pool_columns = pooled_ ? stage().out.width / 2 : 0;
  sums.relu = stage().relu;
  return sums;
}

NoiseBank::NoiseBank(const FirstLayer& layer, const DeviceModel& model, const VoteRequest& draws,
                     int rows, Launches& launches)
    : draws_(draws) {
  draws_.x = Array();
  const int64_t blocks = (draws.n + rows - 1) / rows;
  of_noise_ = DeviceArray<float>(blocks * rows * layer.row_size());
  const Stream& stream = draws.stream;
  const DeviceArray<NoisyCopies> copies(std::vector<NoisyCopies>{
      {stream.key.value, stream.item, stream.client, static_cast<float>(draws.sigma)}});
  const DeviceArray<float> zero(std::vector<float>(model.image_size(), 0.0f));
  check_cuda(cudaStreamSynchronize(nullptr), "bank");
  NoisyRows noises;
  noises.copies = copies.data();
  noises.requests = 1;
  noises.x = zero.data();
  noises.total = draws.n;
  noises.rows = rows;
  noises.image_size = model.image_size();
  noises.area = static_cast<int>(model.image_size() / model.plan().input[0]);
  for (int64_t block = 0; block < blocks; ++block) {
    noises.begin = block * rows;
    layer.of_noises(noises, of_noise_.data() + block * rows * layer.row_size(), launches);
  }
}

bool NoiseBank::serves(const VoteRequest& r) const {
  return begins(r) && r.first + r.n <= draws_.n;
}

bool NoiseBank::begins(const VoteRequest& r) const {
  return r.sigma == draws_.sigma && r.stream.key.value == draws_.stream.key.value &&
         r.stream.item == draws_.stream.item && r.stream.client == draws_.stream.client;
}

}  // namespace fedsmooth
