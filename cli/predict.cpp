// fedsmooth predict RUN_OR_MODEL IMAGE...: PREDICT for image files or test-set indices; and what
// `certify` does with such images.
#include "fedsmooth/jobs/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/advice.h"
#include "cli/certify_images.h"
#include "cli/progress.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/jobs/conformal.h"

namespace fedsmooth::cli {
namespace {

// "stripes (996 of 1000 votes; dots 4)", or "abstains (of 1000 votes: stripes 510, dots 490)".
std::string describe(const jobs::Answer& answer, int64_t n) {
  std::vector<size_t> order(answer.votes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return answer.votes[a] > answer.votes[b]; });
  order.resize(std::min<size_t>(3, order.size()));
  std::vector<std::string> parts;
  for (const size_t c : order) {
    if (answer.votes[c] == 0 || static_cast<int64_t>(c) == answer.predict) continue;
    parts.push_back(
        fmt::format("{} {}", jobs::spoken_name("class", answer.class_names[c]), answer.votes[c]));
  }
  const std::string others = fmt::format("{}", fmt::join(parts, ", "));
  if (answer.predict < 0) return fmt::format("abstains (of {} votes: {})", n, others);
  return fmt::format("{} ({} of {} votes{}{})", jobs::spoken_name("class", answer.class_name),
                     answer.votes[answer.predict], n, others.empty() ? "" : "; ", others);
}

// "image 0 (label stripes)" for an image of the test set, "cat.png" for a file.
template <typename Answer>
std::string spoken_image(const Answer& answer) {
  const std::string name = jobs::spoken_name("image", answer.image);
  return answer.label.empty() ? name : fmt::format("{} (label {})", name, answer.label);
}

template <typename Answer>
nlohmann::json label_json(const Answer& answer) {
  return answer.label.empty() ? nlohmann::json() : nlohmann::json(answer.label);
}

// Says which seed drew the noise of these answers. They have the same one.
template <typename Answers>
void print_seed(const Answers& answers, const CommandContext& common) {
  if (answers.empty() || common.json || common.quiet) return;
  print_status(fmt::format("seed {}; `--seed={}` repeats the noise", answers.front().seed,
                           answers.front().seed));
}

int run_predict(const jobs::PredictArguments& a, const Overrides& overrides,
                const CommandContext& common) {
  nlohmann::json summary = nlohmann::json::array();
  const auto answers = jobs::predict(a, overrides, common.context, [&](const jobs::Answer& answer) {
    if (common.json) {
      summary.push_back({{"image", answer.image},
                         {"label", label_json(answer)},
                         {"predict", answer.predict},
                         {"class", answer.class_name},
                         {"votes", answer.votes},
                         {"seed", seed_json(answer.seed)}});
    } else {
      fmt::print("{}: {}\n", spoken_image(answer), describe(answer, a.n));
    }
  });
  print_seed(answers, common);
  if (!answers.empty()) suggest_command(common, "predict", "certify", "proves radii");
  if (common.json) fmt::print("{}\n", dump_json(summary));
  return 0;
}

int run_predict_sets(const jobs::PredictArguments& a, const std::string& file,
                     const Overrides& overrides, const CommandContext& common) {
  nlohmann::json summary = nlohmann::json::array();
  const auto answers = jobs::predict_sets(a, file, overrides, common.context);
  for (const jobs::SetAnswer& answer : answers) {
    std::vector<std::string> names;
    for (const int64_t c : answer.classes) names.push_back(answer.class_names[c]);
    if (common.json) {
      summary.push_back({{"image", answer.image},
                         {"label", label_json(answer)},
                         {"set", answer.classes},
                         {"classes", names},
                         {"seed", seed_json(answer.seed)}});
    } else {
      fmt::print("{}: {{{}}}\n", spoken_image(answer), fmt::join(names, ", "));
    }
  }
  print_seed(answers, common);
  if (common.json) fmt::print("{}\n", dump_json(summary));
  return 0;
}

}  // namespace

int run_certify_images(const jobs::PredictArguments& a, const Overrides& overrides,
                       const CommandContext& common) {
  nlohmann::json summary = nlohmann::json::array();
  const auto proved = [&](const jobs::ProvedAnswer& answer) {
    const Certificate& c = answer.certificate;
    if (common.json) {
      summary.push_back({{"image", answer.image},
                         {"label", label_json(answer)},
                         {"predict", c.predict},
                         {"class", answer.class_name},
                         {"radius", c.radius},
                         {"norm", answer.norm},
                         {"alpha", answer.alpha},
                         {"n", c.counts.n},
                         {"count_top", c.counts.top},
                         {"seed", seed_json(answer.seed)}});
    } else {
      fmt::print("{}: {}\n", spoken_image(answer), jobs::describe(answer));
    }
  };
  print_seed(jobs::certify_images(a, overrides, common.context, proved), common);
  if (common.json) fmt::print("{}\n", dump_json(summary));
  return 0;
}

void add_predict(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<jobs::PredictArguments>();
  auto sets = std::make_shared<std::string>();
  Command c(app, common, "predict", "the smoothed classifier's answer for images, or an abstention",
            "  fedsmooth predict runs/quickstart/smoothadv 0 1 2\n"
            "  fedsmooth predict model.safetensors cat.png --sigma 0.25 --n 10000\n"
            "  fedsmooth predict a.safetensors cat.png --with b.safetensors --with c.safetensors\n"
            "  fedsmooth predict model.safetensors cat.png --seed=7   # repeats the votes\n"
            "  fedsmooth predict model.safetensors cat.png --sets model.conformal.json");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.arguments("images", a->images, "PNG or JPEG files, or indices of the test set");
  c.repeated_option("with", a->with,
                    "another member of an ensemble: one classifier by the mean of logits");
  c.option("n", a->n, "votes per image");
  c.option("sets", *sets,
           "file of fedsmooth conformal: answer with sets, from one noise per image");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("alpha", "certify.alpha", "failure probability per image");
  c.alias("noise", "certify.noise", "float, or exact: without rounding errors");
  c.on_run([a, sets, &common](const Overrides& overrides) {
    return sets->empty() ? run_predict(*a, overrides, common)
                         : run_predict_sets(*a, *sets, overrides, common);
  });
}

}  // namespace fedsmooth::cli
