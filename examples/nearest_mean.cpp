// The simplest model there is, as a file that `fedsmooth certify` takes: an image belongs to the
// class whose mean training image is nearest. With x the normalised image and mu_c the means,
// argmin_c |x - mu_c|^2 = argmax_c mu_c.x - |mu_c|^2 / 2, which is one linear layer.
#include <fedsmooth/base/file.h>
#include <fedsmooth/data/dataset.h>
#include <fedsmooth/model/model.h>
#include <fmt/format.h>

using namespace fedsmooth;

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: nearest_mean MODEL.safetensors\n");
    return 2;
  }
  const Dataset train = load_dataset({"shapes"}, Split::kTrain);
  const double mean = 0.5, sd = 0.25;
  const int64_t classes = train.classes(), size = train.images.count() / train.size();
  Array means({classes, size}), shift({classes});
  std::vector<double> sums(means.count()), members(classes);
  for (int64_t i = 0; i < train.size(); ++i) {
    const int64_t c = train.label(i);
    members[c] += 1;
    const Array x = train.image(i);
    for (int64_t j = 0; j < size; ++j) sums[c * size + j] += (x.floats()[j] - mean) / sd;
  }
  for (int64_t k = 0; k < means.count(); ++k) {
    const double value = sums[k] / members[k / size];
    means.floats()[k] = static_cast<float>(value);
    shift.floats()[k / size] -= static_cast<float>(value * value / 2);
  }

  Layer classifier{Layer::Kind::kLinear, "classifier", train.classes()};
  const Sizes sizes = train.shape();
  const Shape shape = {sizes[0], sizes[1], sizes[2]};
  const ModelOptions options = {"layers", {mean, mean, mean}, {sd, sd, sd}, {classifier}};
  const Network network = build_network(options, shape, train.classes());
  const Weights weights = {means, shift};
  write_file(argv[1], format_model({network, weights, /*sigma=*/0.25, train.class_names}));
}
