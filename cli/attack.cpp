// fedsmooth attack RUN_OR_MODEL: accuracy of the smoothed classifier under SmoothAdv's attack.
#include "fedsmooth/jobs/attack.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/advice.h"
#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/certification/model_under_test.h"

namespace fedsmooth::cli {
namespace {

struct Arguments : jobs::AttackArguments {
  std::string epsilon_list = "0.25,0.5,0.75,1";
};

std::vector<double> parse_epsilons(const std::string& text) {
  std::vector<double> epsilons;
  const char *next = text.data(), *end = next + text.size();
  while (true) {
    double epsilon = 0.0;
    const auto [rest, status] = std::from_chars(next, end, epsilon);
    if (status != std::errc() || (rest < end && *rest != ',')) {
      throw Error("--epsilon={}: must be numbers with commas between them", text);
    }
    epsilons.push_back(epsilon);
    if (rest == end) return epsilons;
    next = rest + 1;
  }
}

nlohmann::json to_json(const jobs::AttackOutcome& outcome) {
  const AttackSummary& summary = outcome.summary;
  nlohmann::json points = nlohmann::json::array();
  for (const AttackSummary::Point& point : summary.points) {
    points.push_back({{"epsilon", point.epsilon},
                      {"accuracy", point.accuracy.value},
                      {"low", point.accuracy.low},
                      {"high", point.accuracy.high}});
    if (point.certified) points.back()["certified_accuracy"] = *point.certified;
  }
  return {{"attacks", outcome.table.string()},
          {"images", summary.images},
          {"accuracy_under_attack", points}};
}

int run_attack(Arguments a, const Overrides& overrides, const CommandContext& common) {
  a.epsilons = parse_epsilons(a.epsilon_list);
  note_if_nothing_to_resume(
      common, a.resume,
      a.out.empty() ? jobs::table_path(a.path, "attack") : std::filesystem::path(a.out));
  const jobs::AttackOutcome outcome = jobs::attack(a, overrides, common.context);
  print_result(common, to_json(outcome),
               fmt::format("{}{}\n", render_attacks(outcome.summary), outcome.table.string()));
  return 0;
}

}  // namespace

void add_attack(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "attack",
            "accuracy of the smoothed classifier under attack: what certified accuracy must not "
            "exceed",
            "  fedsmooth attack runs/quickstart/smoothadv --every 20\n"
            "  fedsmooth attack model.safetensors --data.name=cifar10 --epsilon 0.25,0.5 --m 128");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.option("epsilon", a->epsilon_list,
           "l2 radii of the attack, with commas; 0.25,0.5,0.75,1 if left out");
  c.alias("m", "smoothing.m", "noises per gradient; 32 if left out");
  c.alias("steps", "attack.steps", "steps of the ascent; 10 if left out");
  c.alias("estimator", "attack.estimator",
          "stochastic, one-point or two-point; stochastic if left out");
  c.option("n", a->n, "votes on each adversarial example");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("every", "certify.every", "attack every Nth image");
  c.alias("limit", "certify.limit", "at most this many images; 0: all");
  c.option("out", a->out, "table to write; beside the model if left out");
  c.flag("resume", a->resume, "continue after the last complete image");
  c.on_run([a, &common](const Overrides& overrides) { return run_attack(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
