#include "fedsmooth/jobs/training/sweep_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/group.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/certification/certification_job.h"
#include "fedsmooth/jobs/pages/tensorboard.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"
#include "fedsmooth/jobs/training.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

bool same_training(const Experiment& a, const Experiment& b) {
  return format_training(a) == format_training(b);
}

class SweepRuns {
 public:
  SweepRuns(const std::vector<NamedExperiment>& all, fs::path out, const Context& context)
      : all_(all), out_(std::move(out)), context_(context), thrown_(all.size()) {}

  // Trains and certifies an experiment if that is left to do. Returns whether it is done now.
  bool attempt(size_t i) {
    const std::string& name = all_[i].name;
    try {
      const bool done = is_done(i);
      context_.note(
          fmt::format("{} ({} of {}){}", name, i + 1, all_.size(), done ? ": done already" : ""));
      if (!done) run(i);
      return true;
    } catch (const Error& error) {
      if (!ranks_of(context_).in_step()) throw;
      context_.warn(fmt::format("{}: {}", name, error.what()));
    } catch (const fs::filesystem_error& error) {
      if (!ranks_of(context_).in_step()) throw;
      context_.warn(
          fmt::format("{}: {}: {}", name, error.path1().string(), error.code().message()));
    } catch (const Interrupted&) {
      throw Interrupted{fmt::format("interrupted in {}; continue with the same command", name)};
    }
    return false;
  }

 private:
  fs::path folder(size_t i) const { return out_ / all_[i].name; }
  bool is_trained(size_t i) const { return fs::exists(folder(i) / "DONE"); }

  bool is_done(size_t i) {
    const Experiment& experiment = all_[i].experiment;
    return is_trained(i) && start_run(folder(i), experiment, /*resume=*/true).done() &&
           is_certified(folder(i), test_sets_, context_);
  }

  void run(size_t i) {
    if (!is_trained(i) && !thrown_[i] && !take_over(i)) train_from(i);
    if (thrown_[i]) std::rethrow_exception(thrown_[i]);
    certify({folder(i).string(), "", "", /*resume=*/true}, {}, context_);
  }

  // Returns another experiment for which the same training was done.
  std::optional<size_t> find_trained(size_t i) const {
    for (size_t j = 0; j < all_.size(); ++j) {
      if (j != i && same_training(all_[j].experiment, all_[i].experiment) && holds_training(j)) {
        return j;
      }
    }
    return std::nullopt;
  }

  bool take_over(size_t i) const {
    const std::optional<size_t> trained = find_trained(i);
    if (!trained) return false;
    fs::create_directories(folder(i));
    const FolderLock lock(folder(i));
    const Run run = start_run(folder(i), all_[i].experiment, /*resume=*/true);
    copy_training(folder(*trained), run);
    if (run.experiment.log.tensorboard) {
      begin_round_events(run.folder, read_rounds(run.folder / "rounds.tsv"));
    }
    return true;
  }

  // The folder of experiment i may have another experiment's run; that must fail only experiment i.
  bool holds_training(size_t i) const {
    return is_trained(i) && same_training(open_run(folder(i)).experiment, all_[i].experiment);
  }

  // Trains experiment i, and later ones that can be trained side by side with it.
  void train_from(size_t i) {
    if (all_[i].experiment.groups.are_trained()) {
      train({all_[i].experiment, folder(i), /*resume=*/true}, context_);
      return;
    }
    std::vector<TrainArguments> runs;
    Indices indices;
    for (size_t j = i; j < all_.size(); ++j) {
      const Experiment& experiment = all_[j].experiment;
      // go_side_by_side() comes first: experiments of other groups may belong to other threads.
      const bool joins = j == i || (go_side_by_side(all_[i].experiment, experiment) &&
                                    !is_trained(j) && !thrown_[j]);
      const bool again = std::any_of(indices.begin(), indices.end(), [&](size_t k) {
        return same_training(all_[k].experiment, experiment);
      });
      if (!joins || again || find_trained(j)) continue;
      runs.push_back({experiment, folder(j), /*resume=*/true});
      indices.push_back(j);
    }
    const std::vector<std::exception_ptr> thrown = train_runs(runs, context_);
    for (size_t j = 0; j < thrown.size(); ++j) thrown_[indices[j]] = thrown[j];
  }

  const std::vector<NamedExperiment>& all_;
  fs::path out_;
  Context context_;
  TestSets test_sets_;
  std::vector<std::exception_ptr> thrown_;  // of each training, which may run before its turn
};

// Puts experiments that can be trained side by side, or by one training, into one group. Groups
// with the most consecutive steps come first, because they take longest, however large the GPU is.
std::vector<Indices> group_experiments(const std::vector<NamedExperiment>& all) {
  std::vector<Indices> groups = group_indices(all.size(), [&](size_t a, size_t b) {
    return go_side_by_side(all[a].experiment, all[b].experiment);
  });
  const auto steps = [&](const Indices& group) {
    const TrainOptions& train = all[group.front()].experiment.train;
    return train.rounds * train.local.steps;
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Indices& a, const Indices& b) { return steps(a) > steps(b); });
  return groups;
}

SweepOutcome attempt_each(SweepRuns& runs, const Indices& indices) {
  SweepOutcome outcome;
  try {
    for (const size_t i : indices) {
      if (runs.attempt(i)) {
        outcome.done.push_back(i);
      } else {
        ++outcome.failed;
      }
    }
  } catch (const Interrupted& stop) {
    outcome.interrupted = stop.message;
  }
  return outcome;
}

// Each thread does the next group until none is left, the user interrupts, or a thread throws.
SweepOutcome attempt_groups(SweepRuns& runs, const std::vector<Indices>& groups, int threads) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> stop = false;
  std::vector<SweepOutcome> outcomes(threads);
  Workers workers(threads);
  workers.run([&](int thread) {
    try {
      for (size_t g = next++; g < groups.size() && !stop; g = next++) {
        outcomes[thread].add(attempt_each(runs, groups[g]));
        if (!outcomes[thread].interrupted.empty()) stop = true;
      }
    } catch (...) {
      stop = true;
      throw;
    }
  });
  SweepOutcome outcome;
  for (const SweepOutcome& one : outcomes) outcome.add(one);
  return outcome;
}

}  // namespace

void SweepOutcome::add(const SweepOutcome& other) {
  done.insert(done.end(), other.done.begin(), other.done.end());
  std::sort(done.begin(), done.end());
  failed += other.failed;
  if (interrupted.empty()) interrupted = other.interrupted;
}

int64_t groups_at_once(const Context& context) {
  return ranks_of(context).size() == 1 && use_gpu(context.device, gpu_unavailable_reason) ? 3 : 1;
}

SweepOutcome run_experiments(const std::vector<NamedExperiment>& all, const fs::path& out,
                             int64_t at_once, const Context& context) {
  SweepRuns runs(all, out, context);
  if (at_once > 1) {
    const std::vector<Indices> groups = group_experiments(all);
    const auto threads = std::min(at_once, static_cast<int64_t>(groups.size()));
    return attempt_groups(runs, groups, static_cast<int>(threads));
  }
  Indices indices(all.size());
  std::iota(indices.begin(), indices.end(), size_t{0});
  return attempt_each(runs, indices);
}

}  // namespace fedsmooth::jobs
