#include "cli/sweep_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <numeric>

#include "cli/certification.h"
#include "cli/progress.h"
#include "cli/rank_jobs.h"
#include "cli/training.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/config/run.h"
#include "fedsmooth/engine/gpu.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTrainingsAtOnce = 3;  // on a GPU

using Places = std::vector<size_t>;

bool same_training(Experiment a, Experiment b) {
  a.certify = b.certify = {};
  return format_experiment(a) == format_experiment(b);
}

class SweepRuns {
 public:
  SweepRuns(const std::vector<NamedExperiment>& all, fs::path out, const Common& common)
      : all_(all), out_(std::move(out)), common_(common), thrown_(all.size()) {}

  /// Whether an experiment is done now.
  bool attempt(size_t i) {
    const std::string& name = all_[i].name;
    try {
      const bool done = is_done(i);
      if (!common_.quiet) {
        fmt::print(stderr, "{} ({} of {}){}\n", name, i + 1, all_.size(),
                   done ? ": done already" : "");
      }
      if (!done) run(i);
      return true;
    } catch (const Error& error) {
      if (!common_.ranks->in_step()) throw;
      fmt::print(stderr, "{}: {}\n", name, error.what());
    } catch (const fs::filesystem_error& error) {
      if (!common_.ranks->in_step()) throw;
      fmt::print(stderr, "{}: {}: {}\n", name, error.path1().string(), error.code().message());
    } catch (const Interrupted&) {
      throw Interrupted{fmt::format("interrupted in {}; the same command goes on", name)};
    }
    return false;
  }

 private:
  fs::path folder(size_t i) const { return out_ / all_[i].name; }
  bool is_trained(size_t i) const { return fs::exists(folder(i) / "DONE"); }

  bool is_done(size_t i) const {
    const Experiment& experiment = all_[i].experiment;
    return is_trained(i) && start_run(folder(i), experiment, /*resume=*/true).done() &&
           is_certified(folder(i), experiment);
  }

  void run(size_t i) {
    if (!is_trained(i) && !thrown_[i] && !take_over(i)) train_from(i);
    if (thrown_[i]) std::rethrow_exception(thrown_[i]);
    certify_images({folder(i).string(), "", "", /*resume=*/true}, {}, common_);
  }

  // Whether the same training was done for another experiment.
  bool take_over(size_t i) const {
    const Experiment& experiment = all_[i].experiment;
    for (size_t j = 0; j < all_.size(); ++j) {
      if (j == i || !same_training(all_[j].experiment, experiment) || !is_trained(j)) continue;
      start_run(folder(j), all_[j].experiment, /*resume=*/true);  // refuses another experiment
      copy_training(folder(j), start_run(folder(i), experiment, /*resume=*/true));
      return true;
    }
    return false;
  }

  // Trains one, and later ones that can go side by side with it.
  void train_from(size_t i) {
    std::vector<TrainArguments> runs;
    Places places;
    for (size_t j = i; j < all_.size(); ++j) {
      const Experiment& experiment = all_[j].experiment;
      const bool joins = j == i || (!is_trained(j) && !thrown_[j] &&
                                    go_side_by_side(all_[i].experiment, experiment));
      const bool again = std::any_of(places.begin(), places.end(), [&](size_t k) {
        return same_training(all_[k].experiment, experiment);
      });
      if (!joins || again) continue;
      runs.push_back({experiment, folder(j), /*resume=*/true});
      places.push_back(j);
    }
    const std::vector<std::exception_ptr> thrown = train_runs(runs, common_);
    for (size_t j = 0; j < thrown.size(); ++j) thrown_[places[j]] = thrown[j];
  }

  const std::vector<NamedExperiment>& all_;
  fs::path out_;
  Common common_;
  std::vector<std::exception_ptr> thrown_;  // what a training threw, perhaps before its turn
};

bool trains_several(const Common& common) {
  return common.ranks->size() == 1 && use_gpu(common.device, missing_gpu);
}

// Experiments that may go side by side, or be one training, are in one list. Those with the most
// steps one after another come first: they take longest, however large the GPU.
std::vector<Places> group_experiments(const std::vector<NamedExperiment>& all) {
  std::vector<Places> groups;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const Places& group) {
      return go_side_by_side(all[group.front()].experiment, all[i].experiment);
    });
    if (found == groups.end()) {
      groups.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  const auto steps = [&](const Places& group) {
    const TrainOptions& train = all[group.front()].experiment.train;
    return train.rounds * train.local.steps;
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Places& a, const Places& b) { return steps(a) > steps(b); });
  return groups;
}

template <typename OnEnd>
SweepOutcome attempt_each(SweepRuns& runs, const Places& places, const OnEnd& on_end) {
  SweepOutcome outcome;
  try {
    for (const size_t i : places) {
      if (runs.attempt(i)) {
        outcome.done.push_back(i);
      } else {
        ++outcome.failed;
      }
      on_end(i);
    }
  } catch (const Interrupted& stop) {
    outcome.interrupted = stop.message;
  }
  return outcome;
}

SweepOutcome run_groups_at_once(const std::vector<NamedExperiment>& all, const fs::path& out,
                                const Common& common) {
  const std::vector<Places> groups = group_experiments(all);
  Common silent = common;
  silent.quiet = true;  // one bar for all
  SweepRuns runs(all, out, silent);
  Progress progress("sweep", 0, static_cast<int64_t>(all.size()), common.quiet);
  std::mutex mutex;
  const auto on_end = [&](size_t i) {
    const std::lock_guard lock(mutex);
    progress.step(all[i].name);
  };
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    SweepOutcome outcome;
    for (size_t g = next++; g < groups.size() && outcome.interrupted.empty(); g = next++) {
      outcome.add(attempt_each(runs, groups[g], on_end));
    }
    return outcome;
  };
  std::vector<std::future<SweepOutcome>> workers;
  for (size_t w = 0; w < std::min(kTrainingsAtOnce, groups.size()); ++w) {
    workers.push_back(std::async(std::launch::async, work));
  }
  SweepOutcome outcome;
  for (auto& worker : workers) outcome.add(worker.get());
  return outcome;
}

}  // namespace

void SweepOutcome::add(const SweepOutcome& other) {
  done.insert(done.end(), other.done.begin(), other.done.end());
  std::sort(done.begin(), done.end());
  failed += other.failed;
  if (interrupted.empty()) interrupted = other.interrupted;
}

SweepOutcome run_experiments(const std::vector<NamedExperiment>& all, const fs::path& out,
                             const Common& common) {
  if (trains_several(common)) return run_groups_at_once(all, out, common);
  SweepRuns runs(all, out, common);
  Places places(all.size());
  std::iota(places.begin(), places.end(), size_t{0});
  return attempt_each(runs, places, [](size_t) {});
}

}  // namespace fedsmooth::cli
