#include <fedsmooth/base/file.h>
#include <fedsmooth/data/dataset.h>
#include <fedsmooth/engine/cpu/base_classifier.h>
#include <fedsmooth/engine/threaded_sampler.h>
#include <fedsmooth/smoothing/certify.h>
#include <fmt/format.h>

using namespace fedsmooth;

int main(int, char** argv) {
  const Dataset test = load_dataset({"shapes"}, Split::kTest);
  const Model model = parse_model(read_file(argv[1]), argv[1], {}, nullptr);
  ThreadedSampler votes(base_classifier(model), /*threads=*/2);
  const Certificate c = certify(votes, test.image(7), model.sigma, {}, /*seed=*/0, /*index=*/7);
  fmt::print("class {} for every image within l2 distance {:.3f}\n", c.predict, c.radius);
}
