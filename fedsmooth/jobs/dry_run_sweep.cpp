// Predicts what is left of a sweep. Trainings and certifications are counted for each experiment,
// and each kind of them is timed once.
#include <fmt/format.h>

#include <map>
#include <set>

#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/federated/server/server_optimizers.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/certification/certification_job.h"
#include "fedsmooth/jobs/dry_run.h"
#include "fedsmooth/jobs/sweep.h"
#include "fedsmooth/jobs/training.h"

namespace fedsmooth::jobs {
namespace {

// Approximate lengths of a row of certificates.tsv and of rounds.tsv.
constexpr int64_t kBytesPerRow = 250, kBytesPerRound = 120;

// Client steps per second, from one trial for each kind of training.
class TrainingRates {
 public:
  explicit TrainingRates(const Context& context) : context_(context) {}

  DryRun predict(const Experiment& e) {
    for (const auto& [tried, found] : tried_) {
      if (go_side_by_side(tried, e)) return scale(found, e);
    }
    tried_.emplace_back(e, dry_run_train(e, context_));
    return tried_.back().second;
  }

 private:
  static DryRun scale(DryRun found, const Experiment& e) {
    const bool centralized = e.train.mode == Mode::kCentralized;
    const int64_t clients = centralized ? 1 : e.train.clients_per_round;
    found.count = e.train.rounds * clients * e.train.local.steps;
    found.seconds = static_cast<double>(found.count) / found.per_second;
    return found;
  }

  const Context& context_;
  std::vector<std::pair<Experiment, DryRun>> tried_;
};

// Votes per second, from one trial of an untrained network for each network, data set and noise.
class VoteRates {
 public:
  explicit VoteRates(const Context& context) : context_(context) {}

  double rate(const Experiment& e, const Network& network, const Dataset& test) {
    const NoiseLaw& law = *e.certify.noise;
    const auto [found, is_new] =
        rates_.try_emplace(fmt::format("{}\n{}\n{}\n{}", show_key(e, "model.name"),
                                       show_key(e, "model.layers"), e.data.name, law.name));
    if (!is_new) return found->second;
    const Model model = {network, initial_weights(network, make_key(0, Purpose::kWeights)), 0, {}};
    const auto sampler = make_sampler(choose_classifier(context_.device, model, law), law,
                                      thread_count(context_), context_.stopped);
    return found->second = votes_per_second(*sampler, test.image(0), certified_sigma(e));
  }

 private:
  const Context& context_;
  std::map<std::string, double> rates_;
};

// Returns the number of networks that an experiment trains, each of which votes.
int64_t networks_of(const Experiment& e) { return e.groups.are_trained() ? e.groups.count : 1; }

// Returns the bytes of a run's models, checkpoints and tables.
int64_t bytes_on_disk(const Experiment& e, const Network& network, int64_t images) {
  const bool centralized = e.train.mode == Mode::kCentralized;
  const int64_t kept =
      std::ssize(names_kept(e.train.server, e.train.rounds)) + (centralized ? 1 : 0);
  const int64_t of_network =
      4 * count_weights(network) * (2 + kept) + e.train.rounds * kBytesPerRound;
  return networks_of(e) * of_network + images * kBytesPerRow;
}

bool is_trained(const std::filesystem::path& run) { return std::filesystem::exists(run / "DONE"); }

}  // namespace

SweepDryRun dry_run_sweep(const SweepArguments& a, const Overrides& overrides,
                          const Context& context) {
  const SweepPlan plan = plan_sweep(a, overrides, context);
  SweepDryRun found{.experiments = plan.experiments.size()};
  TrainingRates trainings(context);
  VoteRates votes(context);
  TestSets test_sets;
  std::set<std::string> trained;  // experiments with the same training text are trained once
  for (const auto& [name, e] : plan.experiments) {
    const std::filesystem::path folder = plan.out / name;
    if (is_trained(folder)) trained.insert(format_training(e));
  }
  for (const auto& [name, e] : plan.experiments) {
    const std::filesystem::path folder = plan.out / name;
    if (trained.insert(format_training(e)).second) {
      const DryRun one = trainings.predict(e);
      ++found.trainings;
      found.rounds += e.train.rounds;
      found.seconds += one.seconds;
      found.device = one.device;
    }
    if (is_trained(folder) && is_certified(folder, test_sets, context)) continue;
    const auto test = test_sets.load(e.data);
    ModelOptions options = e.model;
    set_default_normalization(options, e.data.name, test->data.images.size(1));
    const Network network = build_network(options, image_shape(test->data), test->data.classes());
    const auto images = std::ssize(choose_images(test->data.size(), e.certify));
    const int64_t count = networks_of(e) * images * (e.certify.selection_votes() + e.certify.n);
    ++found.certifications;
    found.votes += count;
    found.at_most |= e.certify.rule() != VoteRule::kFixed || e.certify.only_correct;
    found.seconds += static_cast<double>(count) / votes.rate(e, network, test->data);
    found.disk_bytes += bytes_on_disk(e, network, images);
  }
  return found;
}

}  // namespace fedsmooth::jobs
