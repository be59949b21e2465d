// Whole networks backwards: the slope of a loss along a direction, by central differences in
// double. The loss is the mean cross entropy, as in training.
#include <gtest/gtest.h>

#include "fedsmooth/model/architectures.h"
#include "tests/engine/networks.h"
#include "tests/engine/reference/double_networks.h"

namespace fedsmooth::reference {
namespace {

constexpr int64_t kImages = 2;

bool is_thin(const std::string& name) {
  return name == "resnet18" || name == "vgg16-bn" || name.starts_with("wrn");
}

/// The architecture for images that are as small as it takes them, or with few channels.
Network smallest_network(const std::string& name) {
  if (is_thin(name)) return thin_network(name, name == "wrn-16-4" ? 4 : 16);
  const ModelOptions options{
      .name = name, .mean = {0.5, 0.4, 0.3}, .sd = {0.2, 0.25, 0.3}, .layers = {}};
  const int64_t side = name.starts_with("alexnet") ? 32 : name == "small" ? 16 : 8;
  return build_network(options, {3, side, side}, 10);
}

/// Residual blocks add to their input, and need no gain.
Weights weights_of(const Network& network) {
  const bool residual = network.name.starts_with("resnet") || network.name.starts_with("wrn");
  return lively_weights(network, residual ? 1 : std::sqrt(6.0f));
}

struct Loss {
  double value = 0;
  Map<double> gradient;
};

/// Image i has label i.
Loss cross_entropy(const Map<double>& logits) {
  Loss loss{0, logits};
  const int64_t classes = logits.size();
  for (int64_t i = 0; i < logits.images; ++i) {
    double* z = loss.gradient.plane(i, 0);
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(z[k]);
    loss.value += (std::log(sum) - z[i]) / static_cast<double>(logits.images);
    for (int64_t k = 0; k < classes; ++k) {
      z[k] = (std::exp(z[k]) / sum - (k == i ? 1 : 0)) / static_cast<double>(logits.images);
    }
  }
  return loss;
}

Values<double> random_direction(size_t count, uint64_t seed) {
  Values<float> normals(count);
  fill_normal({make_key(seed, Purpose::kProbe), 3}, 0, normals.data(), std::ssize(normals));
  return {normals.begin(), normals.end()};
}

double product(const Values<double>& a, const Values<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void move(const Values<double>& from, double by, const Values<double>& along, Values<double>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] + by * along[i];
}

// A step so small that no ReLU and no maximum changes its mind on the way: a network has some ten
// thousand of them. The loss is rounded by some 1e-14, its slope by 1e-7 then.
constexpr double kStep = 1e-7;

void expect_slope(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-6 * std::abs(expected) + 1e-7);
  EXPECT_GT(std::abs(expected), 1e-3);
}

// With respect to the images, then to all trained weights together.
void expect_slopes(const std::string& name, const std::optional<Stream>& training) {
  const Network description = smallest_network(name);
  auto network = network_of<double>(description, weights_of(description));
  const std::vector<Values<double>> start = network.weights;
  const Shape& in = description.input;
  const Map<double> images = map_of<double>(uniform({kImages, in[0], in[1], in[2]}, 4));
  const auto found = network.backward(cross_entropy(network.forward(images, training)).gradient);
  network.weights = start;

  const Values<double> along = random_direction(images.values.size(), 1);
  double step = 0;
  const double to_images = slope(step, kStep, [&] {
    Map<double> x = images;
    move(images.values, step, along, x.values);
    return cross_entropy(network.forward(x, training)).value;
  });
  expect_slope(product(found.images.values, along), to_images);

  std::vector<Values<double>> directions;
  double sum = 0;
  const std::vector<Parameter> known = parameters(description);
  for (size_t t = 0; t < start.size(); ++t) {
    // All tensors move by the same length, so that none hides behind a larger one.
    Values<double>& direction = directions.emplace_back(random_direction(start[t].size(), 2 + t));
    const double length = known[t].trained ? std::sqrt(product(direction, direction)) : INFINITY;
    for (double& value : direction) value /= length;
    if (known[t].trained) sum += product(found.weights[t], direction);
  }
  const double to_weights = slope(step, kStep, [&] {
    for (size_t t = 0; t < start.size(); ++t) {
      move(start[t], step, directions[t], network.weights[t]);
    }
    return cross_entropy(network.forward(images, training)).value;
  });
  expect_slope(sum, to_weights);
}

struct Case {
  std::string name;
  std::optional<Stream> training;
};

std::vector<Case> cases() {
  std::vector<Case> made;
  for (const std::string& name : architecture_names()) {
    if (name == "wrn-28-10") continue;  // wrn-16-4 has all of its kinds of blocks
    made.push_back({name, Stream{make_key(2, Purpose::kDropout), 1, 4}});
    // A pass of the largest takes a second: with its dropout only.
    if (name != "alexnet-fc") made.push_back({name, std::nullopt});
  }
  return made;
}

class NetworkGradientsTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, NetworkGradientsTest, testing::ValuesIn(cases()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (info.param.training ? "_in_training" : "_as_it_answers");
                         });

TEST_P(NetworkGradientsTest, AreThoseOfFiniteDifferences) {
  expect_slopes(GetParam().name, GetParam().training);
}

double relative_error(const Values<float>& found, const Values<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) squares += std::pow(found[i] - expected[i], 2);
  return std::sqrt(squares / product(expected, expected));
}

TEST_P(NetworkGradientsTest, AreTheSameInFloat) {
  const Network description = smallest_network(GetParam().name);
  const Weights weights = weights_of(description);
  const Shape& in = description.input;
  const Array images = uniform({kImages, in[0], in[1], in[2]}, 4);
  auto exact = network_of<double>(description, weights);
  const Map<double> logits = exact.forward(map_of<double>(images), GetParam().training);
  const Map<double> gradient = cross_entropy(logits).gradient;
  const auto expected = exact.backward(gradient);
  auto rounded = network_of<float>(description, weights);
  const Map<float> found_logits = rounded.forward(map_of<float>(images), GetParam().training);
  Map<float> rounded_gradient(kImages, {10, 1, 1});
  std::copy(gradient.values.begin(), gradient.values.end(), rounded_gradient.values.begin());
  const auto found = rounded.backward(rounded_gradient);
  EXPECT_LT(relative_error(found_logits.values, logits.values), 1e-5);
  EXPECT_LT(relative_error(found.images.values, expected.images.values), 1e-5);
  for (size_t t = 0; t < weights.size(); ++t) {
    if (expected.weights[t].empty()) continue;  // not trained
    if (GetParam().training && is_shift_before_a_norm(description, t)) continue;
    EXPECT_LT(relative_error(found.weights[t], expected.weights[t]), 1e-5) << t;
  }
}

}  // namespace
}  // namespace fedsmooth::reference
