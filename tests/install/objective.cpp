// An objective outside the tree, with a score and a list of examples of its own: cross entropy on
// the image itself and on copies with fresh noise. Trains one round with it.
#include <fedsmooth/federated/local_step.h>
#include <fedsmooth/federated/objectives/example_rows.h>
#include <fedsmooth/fedsmooth.h>

namespace fedsmooth {
namespace {

void score(ScoredImage<double>& image) {
  for (int i = 0; i < image.copies; ++i) {
    const int row = i * image.stride;
    const auto log_p = softmax(image.logits + row, image.classes, image.p + row);
    image.terms.fit -= log_p[image.y];
    for (int k = 0; k < image.classes; ++k) {
      image.gradient[row + k] = image.p[row + k] - (k == image.y ? 1 : 0);
    }
  }
}

Examples list(LocalStep& step, const Batch& b, const Array& delta) {
  const int64_t m = delta.size(1);
  const Array fresh = draw_noise(b.x, m, step.task.smoothing.sigma,
                                 step.streams.of(Purpose::kObjective, step.first() + step.i));
  return {interleave(b.x, noisy_copies(b.x, fresh), b.x.size(0)), b.y, 1 + m};
}

}  // namespace
}  // namespace fedsmooth

int main(int, char** argv) {
  using namespace fedsmooth;
  add_objective({.name = "clean-and-noisy", .score = score, .list = list});
  const Experiment e = parse_experiment(R"(
train.method = "clean-and-noisy"
train.rounds = 1
train.clients_per_round = 2
train.local.steps = 1
train.local.batch = 2
data.name = "shapes"
model.name = "small"
partition.kind = "iid"
partition.clients = 4
partition.samples_per_client = 10
)",
                                        "e.toml");
  jobs::Context context;
  context.device = "cpu";  // GPUs do not know this objective
  const jobs::TrainedRun run = jobs::train({e, argv[1]}, context);
  return run.rounds == 1 && run.loss > 0 ? 0 : 1;
}
