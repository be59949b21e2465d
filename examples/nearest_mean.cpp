// The simplest model there is, as a file that `fedsmooth certify` takes: an image belongs to the
// class whose mean training image is nearest. With x the normalised image and mu_c the means,
// argmin_c |x - mu_c|^2 = argmax_c mu_c.x - |mu_c|^2 / 2, which is one linear layer.
#include <ATen/ATen.h>
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
  const Tensor x = train.images.to(at::kFloat).div(255).sub(mean).div(sd).flatten(1);  // [N, D]
  const Tensor member = at::one_hot(train.labels, train.classes()).to(at::kFloat);     // [N, K]
  const Tensor means = member.t().mm(x) / member.sum(0).unsqueeze(1);                  // [K, D]

  Layer classifier{Layer::Kind::kLinear, "classifier", train.classes()};
  const Shape shape = {train.images.size(1), train.images.size(2), train.images.size(3)};
  const ModelOptions options = {"layers", {mean, mean, mean}, {sd, sd, sd}, {classifier}};
  const Network network = build_network(options, shape, train.classes());
  const Weights weights = {means, means.square().sum(1).div(-2)};
  write_file(argv[1], format_model({network, weights, /*sigma=*/0.25, train.class_names}));
}
