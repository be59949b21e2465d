#include <fedsmooth/fedsmooth.h>
#include <fmt/format.h>

#include <cstdio>

using namespace fedsmooth;

void run(const char* path) {
  const Model model = load_model(path);
  const Dataset test = load_dataset({"shapes"}, Split::kTest);
  const BaseClassifier f = choose_classifier("auto", model, kFloatNoise);
  const auto votes = make_sampler(f, kFloatNoise, /*threads=*/2);
  const Certificate c = certify(*votes, test.image(7), model.sigma, {}, /*seed=*/0, /*index=*/7);
  fmt::print("class {} for every image within l2 distance {:.3f}\n", c.predict, c.radius);

  // The whole test set, into a table: locked while it is written, resumed where it stopped.
  const auto table = jobs::certify({.path = path, .resume = true},
                                   {{"data.name", "shapes"}, {"certify.n", "1000"}}, {});
  fmt::print("{}\n", table.string());
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: certify_image MODEL.safetensors\n");
    return 2;
  }
  try {
    run(argv[1]);
  } catch (const Error& error) {  // a mistake in the arguments or in a file, in one line
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
