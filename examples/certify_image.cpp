#include <fedsmooth/fedsmooth.h>
#include <fmt/format.h>

using namespace fedsmooth;

int main(int argc, char** argv) try {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} MODEL.safetensors\n", argv[0]);
    return 2;
  }
  const Model model = load_model(argv[1]);
  const Dataset test = load_dataset({"shapes"}, Split::kTest);
  const BaseClassifier f = choose_classifier("auto", model, kFloatNoise);
  const auto votes = make_sampler(f, kFloatNoise, /*threads=*/2);
  const Certificate c = certify(*votes, test.image(7), model.sigma, {}, /*seed=*/0, /*index=*/7);
  fmt::print("class {} for every image within l2 distance {:.3f}\n", c.predict, c.radius);

  // The whole test set, into a table: locked while it is written, resumed where it stopped.
  const auto table = jobs::certify({.path = argv[1], .resume = true},
                                   {{"data.name", "shapes"}, {"certify.n", "1000"}}, {});
  fmt::print("{}\n", table.string());
} catch (const Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
