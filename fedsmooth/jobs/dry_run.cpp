#include "fedsmooth/jobs/dry_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "fedsmooth/base/memory.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/jobs/bench.h"
#include "fedsmooth/jobs/certification/certification_job.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"
#include "fedsmooth/jobs/training/group_runs.h"

namespace fedsmooth::jobs {
namespace {

// Returns the peak memory of this process so far.
int64_t peak_bytes() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  return 1024 * used.ru_maxrss;
}

double seconds_for_votes(Sampler& sampler, const Array& x, double sigma, int64_t n) {
  const auto start = std::chrono::steady_clock::now();
  sampler.count({x, sigma, n, {make_key(0, Purpose::kProbe)}});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the memory of a cohort's weights that are kept until they are reduced; 0: they are added
// up.
int64_t bytes_of_kept_cohort(const Experiment& e, const Dataset& data, int64_t clients) {
  if (gathered_for(e.train) == Gather::kSum) return 0;
  ModelOptions options = e.model;
  set_default_normalization(options, e.data.name, data.images.size(1));
  return bytes_of_cohort(build_network(options, image_shape(data), data.classes()), clients);
}

// Times one round: two of its steps on the CPU; all of them on a GPU, where only a whole round is
// timed.
nlohmann::json try_training(Experiment e, const ImageKind& kind, const Context& context) {
  constexpr int64_t kFewSteps = 2;
  const int64_t steps = e.train.local.steps;
  e.train.local.steps = std::min(steps, kFewSteps);
  const nlohmann::json found = time_rounds(e, context, /*repeats=*/1, kind);
  if (found["device"] == "cpu" || steps <= kFewSteps) return found;
  e.train.local.steps = steps;
  return time_rounds(e, context, /*repeats=*/1, kind);
}

}  // namespace

double votes_per_second(Sampler& sampler, const Array& x, double sigma) {
  constexpr double kEnough = 0.2;
  for (int64_t n = sampler.batch();; n *= 4) {
    const double seconds = seconds_for_votes(sampler, x, sigma, n);
    if (seconds > kEnough) return static_cast<double>(n) / seconds;
  }
}

DryRun dry_run_certify(const CertifyArguments& a, const Overrides& overrides,
                       const Context& context) {
  check_context(context);
  TestSets test_sets;
  const CertificationJob job = load_job(a, overrides, context, test_sets);
  const CertificationOptions& o = job.subject.experiment.certify;
  const auto images = std::ssize(job.images);
  DryRun found;
  found.at_most = o.rule() != VoteRule::kFixed || o.only_correct;
  found.count = images * (o.selection_votes() + o.n);
  found.work =
      fmt::format("{} images with {} + {}{} votes each, at sigma {}", images, o.selection_votes(),
                  found.at_most ? "up to " : "", o.n, job.subject.sigma);
  const Array x = job.data.image(job.row(0));
  found.per_second = votes_per_second(*job.sampler, x, job.subject.sigma);
  found.seconds = static_cast<double>(found.count) / found.per_second / ranks_of(context).size();
  found.bytes = peak_bytes();
  found.device = job.sampler->description();
  found.device_bytes = found.device.starts_with("cuda") ? gpu_bytes_in_use() : 0;
  return found;
}

DryRun dry_run_train(const Experiment& e, const Context& context) {
  check_context(context);
  check_groups(e);
  const Dataset data = load_dataset(e.data, Split::kTrain);
  const bool centralized = e.train.mode == Mode::kCentralized;
  const int64_t groups = e.groups.are_trained() ? e.groups.count : 1;
  const int64_t per_round = groups * (centralized ? 1 : e.train.clients_per_round);
  const int64_t kept = bytes_of_kept_cohort(e, data, per_round / e.train.server.clusters);
  check_cohort_fits(kept, available_memory());
  const nlohmann::json trial = try_training(e, {image_shape(data), data.classes()}, context);
  DryRun found;
  found.count = e.train.rounds * per_round * e.train.local.steps;
  found.work = fmt::format("{} rounds of {} clients with {} local steps each", e.train.rounds,
                           per_round, e.train.local.steps);
  found.per_second = 1 / trial["seconds_per_client_step"].get<double>();
  found.seconds = static_cast<double>(found.count) / found.per_second / ranks_of(context).size();
  if (kept > 0) {
    found.work +=
        fmt::format(", whose weights are kept: {:.2g} GB", static_cast<double>(kept) / 1e9);
  }
  found.bytes = peak_bytes() + kept;
  found.device = trial["device"];
  found.device_bytes = found.device == "cpu" ? 0 : gpu_bytes_in_use();
  return found;
}

}  // namespace fedsmooth::jobs
