#include "fedsmooth/jobs/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/config/figure_list.h"
#include "fedsmooth/config/sweep.h"
#include "fedsmooth/distributed/deal.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"
#include "fedsmooth/jobs/report.h"
#include "fedsmooth/jobs/training/sweep_runs.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> find_files(const fs::path& path) {
  if (!fs::exists(path)) throw Error("{}: no such file or folder", path.string());
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    const fs::path& file = entry.path();
    if (file.extension() == ".toml" && file.filename() != kFiguresFile) files.push_back(file);
  }
  if (files.empty()) throw Error("{}: no .toml files here", path.string());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<NamedExperiment> list_experiments(const fs::path& path, const Overrides& overrides) {
  std::vector<NamedExperiment> all;
  std::set<std::string> names;
  for (const fs::path& file : find_files(path)) {
    Sweep sweep = read_sweep(file);
    for (const auto& [key, value] : overrides) set_key(sweep, key, value);
    for (NamedExperiment& one : expand(sweep)) {
      if (!names.insert(one.name).second) {
        throw Error("{}: two experiments are called {}", path.string(), one.name);
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

// Returns runs/NAME for a folder NAME. For a file it is runs/NAME-sweep, because `train` uses
// runs/NAME.
fs::path default_out(const fs::path& path) {
  const fs::path name = fs::weakly_canonical(path);
  return fs::path("runs") /
         (fs::is_directory(path) ? name.filename().string() : name.stem().string() + "-sweep");
}

// Throws an Error if `out` is a run, whose report a sweep would replace.
void check_is_no_run(const fs::path& out) {
  if (!fs::exists(out / "experiment.toml") && !fs::exists(out / "DONE")) return;
  throw Error("{}: is a run, a sweep needs a folder of its own; choose another --out",
              out.string());
}

// Estimates the number of forward passes of single images in an experiment; a backward pass counts
// as two.
double cost_of(const Experiment& e, bool is_trained) {
  constexpr double kTestImages = 10'000;
  const TrainOptions& o = e.train;
  const double clients = o.mode == Mode::kFederated ? static_cast<double>(o.clients_per_round) : 1;
  const double images = static_cast<double>(o.rounds * o.local.steps * o.local.batch) * clients;
  const Network network;
  const Dataset data;
  const LocalTask task{network,  data,    e.data.augment, o.method,    e.smoothing,
                       e.attack, o.local, e.seed,         e.objective, /*progress=*/1};
  const double certify = kTestImages / static_cast<double>(e.certify.every) *
                         static_cast<double>(e.certify.n0 + e.certify.n);
  return (is_trained ? 0 : images * passes_of(task)) + certify;
}

// Experiments that share a drawn seed keep sharing one: the seed of the first of them that has a
// folder. All ranks get rank 0's seeds.
void settle_drawn_seeds(std::vector<NamedExperiment>& all, const fs::path& out, Ranks& ranks) {
  std::map<uint64_t, uint64_t> kept;
  std::vector<uint64_t> seeds;
  for (const auto& [name, experiment] : all) {
    Experiment begun = experiment;
    keep_drawn_seed(begun, out / name);
    if (begun.seed != experiment.seed) kept.emplace(experiment.seed, begun.seed);
  }
  for (const auto& [name, experiment] : all) {
    const auto found = kept.find(experiment.seed);
    const bool settled = experiment.seed_is_random && found != kept.end();
    seeds.push_back(settled ? found->second : experiment.seed);
  }
  std::string text = nlohmann::json(seeds).dump();
  ranks.broadcast(text);
  seeds = nlohmann::json::parse(text).get<std::vector<uint64_t>>();
  for (size_t i = 0; i < all.size(); ++i) all[i].experiment.seed = seeds[i];
}

// Returns the experiments of this rank's group. Rank 0 deals them, because other ranks may see
// another state of the folders.
std::vector<size_t> choose_share(const std::vector<NamedExperiment>& all, const fs::path& out,
                                 int64_t groups, Ranks& ranks) {
  std::string text;
  if (ranks.leads()) {
    std::vector<double> costs;
    for (const NamedExperiment& one : all) {
      costs.push_back(cost_of(one.experiment, fs::exists(out / one.name / "DONE")));
    }
    text = nlohmann::json(deal(costs, static_cast<int>(groups))).dump();
  }
  ranks.broadcast(text);
  return nlohmann::json::parse(text)[ranks.rank() * groups / ranks.size()];
}

SweepOutcome run_share(const std::vector<NamedExperiment>& all, const std::vector<size_t>& indices,
                       const fs::path& out, int64_t at_once, const Context& context) {
  std::vector<NamedExperiment> own;
  for (const size_t i : indices) own.push_back(all[i]);
  SweepOutcome outcome =
      run_experiments(own, out, at_once > 0 ? at_once : groups_at_once(context), context);
  for (size_t& i : outcome.done) i = indices[i];
  return outcome;
}

// Returns the outcome of all groups at rank 0. The wait has no limit, because groups may end hours
// apart.
SweepOutcome join_shares(const SweepOutcome& own, Ranks& ranks) {
  const nlohmann::json mine = {
      {"done", own.done}, {"failed", own.failed}, {"interrupted", own.interrupted}};
  SweepOutcome all;
  for (const std::string& text : ranks.gather(dump_json(mine), /*patient=*/true)) {
    const nlohmann::json one = nlohmann::json::parse(text);
    all.add({one["done"], one["failed"], one["interrupted"]});
  }
  return all;
}

// Each group does its share as if it were alone, led by the first of its ranks.
SweepOutcome run_in_groups(const std::vector<NamedExperiment>& all, const fs::path& out,
                           const SweepArguments& a, const Context& context) {
  Ranks& ranks = ranks_of(context);
  const std::vector<size_t> indices = choose_share(all, out, a.side_by_side, ranks);
  Ranks group = ranks.group(static_cast<int>(a.side_by_side));
  Context own = context;
  own.ranks = &group;
  if (!ranks.leads()) {
    own.note = [](const std::string&) {};
    own.progress = {};
  }
  SweepOutcome share;
  try {
    lead_group(own, [&] {
      share = run_share(all, indices, out, a.at_once, own);
      return 0;
    });
  } catch (...) {
    ranks.lose_step();
    throw;
  }
  return join_shares(share, ranks);
}

void check_arguments(const SweepArguments& a, const Context& context) {
  check_context(context);
  const int ranks = ranks_of(context).size();
  if (a.side_by_side < 1 || a.side_by_side > ranks) {
    throw Error("--side-by-side={}: must be between 1 and the number of ranks, {}", a.side_by_side,
                ranks);
  }
  if (a.at_once < 0 || (a.at_once > 1 && a.side_by_side < ranks)) {
    throw Error("--at-once={}: must be positive, and 1 where several ranks do an experiment",
                a.at_once);
  }
}

// Returns the text of a folder's figures.toml, checked; empty if there is none.
std::string read_figures(const fs::path& folder) {
  const fs::path file = folder / kFiguresFile;
  if (!fs::exists(file)) return {};
  std::string text = read_file(file);
  parse_figures(text, file.string());
  return text;
}

}  // namespace

SweepPlan plan_sweep(const SweepArguments& a, const Overrides& overrides, const Context& context) {
  check_arguments(a, context);
  SweepPlan plan{list_experiments(a.path, overrides),
                 a.out.empty() ? default_out(a.path) : fs::path(a.out), read_figures(a.path)};
  check_is_no_run(plan.out);
  for (const auto& [name, experiment] : plan.experiments) check_certification(experiment);
  return plan;
}

SweepResult sweep(const SweepArguments& a, const Overrides& overrides, const Context& context) {
  SweepPlan plan;
  meet(context, [&] {
    plan = plan_sweep(a, overrides, context);
    nlohmann::json described;
    for (const auto& [name, experiment] : plan.experiments) {
      described[name] = describe_experiment(experiment);
    }
    return described;
  });
  auto& [all, out, figures] = plan;
  settle_drawn_seeds(all, out, ranks_of(context));
  const SweepOutcome share = run_in_groups(all, out, a, context);
  SweepResult result{out / "report.html", {}, {}, share.failed, all.size()};
  if (!ranks_of(context).leads()) return result;
  if (!figures.empty()) write_file(out / kFiguresFile, figures);
  if (!share.interrupted.empty()) throw Interrupted{share.interrupted};
  for (const size_t i : share.done) result.done.push_back((out / all[i].name).string());
  // The report shows all runs in the folder, including those of other sweeps.
  if (!result.done.empty()) result.runs = report_folder(out, result.page, context);
  return result;
}

}  // namespace fedsmooth::jobs
