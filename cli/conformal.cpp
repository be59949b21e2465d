// fedsmooth conformal RUN_OR_MODEL: calibrate sets that `predict --sets` answers with.
#include "fedsmooth/jobs/conformal.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/summary.h"

namespace fedsmooth::cli {
namespace {

using nlohmann::json;

json calibrated_json(const jobs::Calibrated& made) {
  json summary = conformal_json(made.calibration);
  summary["file"] = made.file.string();
  return summary;
}

std::string render(const jobs::Calibrated& made) {
  const ConformalCalibration& c = made.calibration;
  std::string text = fmt::format(
      "sets hold the label with probability {} or more, moved by any l2 distance up to {} without "
      "knowledge of the noise\n  calibrated on {} images, sigma {}, quantile {:.4f}, seed {}\n",
      c.coverage, c.epsilon, *c.subject.images, *c.subject.sigma, c.quantile, *c.subject.seed);
  if (c.test) {
    text += fmt::format(
        "  on {} other images, unmoved: coverage {:.1f}%, {:.2f} classes in a set, {} sets empty\n",
        c.test->images, 100 * c.test->coverage, c.test->mean_size, c.test->empty);
  }
  return text + made.file.string() + "\n";
}

}  // namespace

void add_conformal(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<jobs::ConformalArguments>();
  Command c(
      app, common, "conformal",
      "calibrate sets of classes that hold the label under perturbations, for predict --sets",
      "  fedsmooth conformal runs/quickstart/smoothadv --epsilon 0.25 --coverage 0.9\n"
      "  fedsmooth conformal model.safetensors --data.name=cifar10 --epsilon 0.25 --images 4000\n"
      "  fedsmooth predict runs/quickstart/smoothadv cat.png --sets "
      "runs/quickstart/smoothadv/conformal.json");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.option("epsilon", a->epsilon, "l2 distance by which an image may be moved");
  c.option("coverage", a->coverage, "least probability that a set holds the label");
  c.option("images", a->images,
           "images that calibrate; 0: all that data.held_out keeps from training, or a random half "
           "of the test images");
  c.option("out", a->out, "file to write; conformal.json beside the model if left out");
  c.repeated_option("with", a->with,
                    "another member of an ensemble: one classifier by the mean of logits");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("noise", "certify.noise", "float, or exact: without rounding errors");
  c.on_run([a, &common](const Overrides& overrides) {
    const jobs::Calibrated made = jobs::calibrate(*a, overrides, common.context);
    print_result(common, calibrated_json(made), render(made));
    return 0;
  });
}

}  // namespace fedsmooth::cli
