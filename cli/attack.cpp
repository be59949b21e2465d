// fedsmooth attack RUN_OR_MODEL: accuracy of the smoothed classifier under SmoothAdv's attack.
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/attack_summary.h"
#include "cli/attacker.h"
#include "cli/progress.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string path, out, epsilons = "0.25,0.5,0.75,1";
  int64_t n = 1000;
  bool resume = false;
};

// Stronger than in training, where the attack is paid for in every step. Users' overrides follow.
const Overrides kDefaults = {{"attack.estimator", "stochastic"},
                             {"attack.steps", "10"},
                             {"attack.step_size", "auto"},
                             {"attack.normalize", "true"},
                             {"smoothing.m", "32"},
                             {"certify.noise", "float"}};  // what it moves is no more made of bytes

constexpr double kMaxEpsilon = 1e6;  // no two images are that far apart

// Rising, with 0 for the image itself.
std::vector<double> parse_epsilons(const std::string& text) {
  std::set<double> epsilons = {0.0};
  const char *next = text.data(), *end = next + text.size();
  while (true) {
    double epsilon = 0.0;
    const auto [rest, status] = std::from_chars(next, end, epsilon);
    if (status != std::errc() || !(epsilon >= 0 && epsilon <= kMaxEpsilon) ||
        (rest < end && *rest != ',')) {
      throw Error("--epsilon={}: must be numbers from 0 to {} with commas between them", text,
                  kMaxEpsilon);
    }
    epsilons.insert(epsilon);
    if (rest == end) return {epsilons.begin(), epsilons.end()};
    next = rest + 1;
  }
}

nlohmann::json describe(const AttackPlan& plan) {
  nlohmann::json identity = describe_subject(plan.subject, plan.data);
  identity["n"] = plan.n;
  identity["epsilons"] = plan.epsilons;
  for (const auto& [key, value] : kDefaults) {
    identity[key] = nlohmann::json::parse(show_key(plan.subject.experiment, key));
  }
  return identity;
}

// The rows of an earlier, interrupted attack: whole images, the first of the plan.
std::vector<AttackRow> keep_whole_images(const AttackPlan& plan, const std::string& text,
                                         const std::string& name) {
  std::vector<AttackRow> rows = parse_attacks(text, name);
  const size_t per_image = plan.epsilons.size();
  rows.resize(rows.size() / per_image * per_image);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i / per_image >= plan.images.size() || rows[i].index != plan.images[i / per_image] ||
        rows[i].epsilon != plan.epsilons[i % per_image]) {
      throw Error("{}: row {} is image {} at epsilon {}, which this attack does not have there",
                  name, i + 1, rows[i].index, rows[i].epsilon);
    }
  }
  return rows;
}

std::string format_rows(const std::vector<AttackRow>& rows) {
  std::string text;
  for (const AttackRow& row : rows) text += format_attack(row);
  return text;
}

// Images are attacked by whoever is free and written in their order.
void attack_images(const AttackPlan& plan, size_t first, int threads, bool quiet, TableFile& file) {
  Workers workers(threads);
  Progress progress("attack", static_cast<int64_t>(first), static_cast<int64_t>(plan.images.size()),
                    quiet);
  std::atomic<size_t> next = first;
  std::mutex mutex;
  std::map<size_t, std::vector<AttackRow>> waiting;
  size_t written = first;
  const auto take = [&](size_t i, std::vector<AttackRow> rows) {
    const std::lock_guard lock(mutex);
    waiting[i] = std::move(rows);
    for (; waiting.contains(written); waiting.erase(written++)) {
      file.append(format_rows(waiting[written]));
      progress.step("");
    }
  };
  workers.run([&](int) {
    try {
      Attacker attacker(plan);
      for (size_t i; (i = next.fetch_add(1)) < plan.images.size();) {
        take(i, attacker.attack(plan.images[i]));
      }
    } catch (...) {
      next = plan.images.size();  // ends it for all
      throw;
    }
  });
}

int run_attack(const Arguments& a, const Overrides& overrides, const Common& common) {
  for (const auto& [key, value] : overrides) {
    if (key == "attack.epsilon") throw Error("--attack.epsilon: is training's; give --epsilon");
  }
  Overrides all = kDefaults;
  all.insert(all.end(), overrides.begin(), overrides.end());
  refuse_gpu(common);
  const int threads = thread_count(common);
  const std::vector<double> epsilons = parse_epsilons(a.epsilons);
  if (a.n < 1) throw Error("--n={}: must be positive", a.n);
  const Dataset data = load_dataset(subject_experiment(a.path, all).data, Split::kTest);
  Subject subject = load_subject(a.path, all, &data, image_shape(data), "cpu");
  subject.fingerprint = check_is_function(subject.f, data.shape()).fingerprint;
  const AttackPlan plan{subject, data, choose_images(data.size(), subject.experiment.certify),
                        epsilons, a.n};

  const fs::path table = a.out.empty() ? table_path(a.path, "attack") : fs::path(a.out);
  const nlohmann::json identity = describe(plan);
  std::vector<AttackRow> kept;
  try {
    TableFile file(table, attack_header(),
                   {{"identity", identity}, {"provenance", build_provenance()}}, a.resume,
                   [&](const std::string& text) {
                     kept = keep_whole_images(plan, text, table.string());
                     return attack_header() + format_rows(kept);
                   });
    attack_images(plan, kept.size() / epsilons.size(), threads, common.quiet, file);
  } catch (const Cancelled&) {
    throw Interrupted{"interrupted; continue with --resume"};
  }
  print_attacks(table, identity, table_path(a.path, "certificates"), common);
  return 0;
}

}  // namespace

void add_attack(CLI::App& app, Common& common) {
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "attack",
            "accuracy of the smoothed classifier under attack: what certified accuracy must not "
            "exceed",
            "  fedsmooth attack runs/quickstart/smoothadv --every 20\n"
            "  fedsmooth attack model.safetensors --data.root=data --epsilon 0.25,0.5 --m 128");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.option("epsilon", a->epsilons, "l2 radii of the attack, with commas; 0.25,0.5,0.75,1");
  c.alias("m", "smoothing.m", "noises per gradient; 32 if left out");
  c.alias("steps", "attack.steps", "steps of the ascent; 10 if left out");
  c.alias("estimator", "attack.estimator", "of the gradient; stochastic if left out");
  c.option("n", a->n, "votes on each adversarial example");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("every", "certify.every", "attack every Nth image");
  c.alias("limit", "certify.limit", "at most this many images; 0: all");
  c.option("out", a->out, "table to write; beside the model if left out");
  c.flag("resume", a->resume, "continue after the last complete image");
  c.on_run([a, &common](const Overrides& overrides) { return run_attack(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
