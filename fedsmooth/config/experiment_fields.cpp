// The whole format of an experiment: every key with its type and range.
#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/experiment_toml.h"
#include "fedsmooth/data/data_source.h"
#include "fedsmooth/model/residual_networks.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

bool positive(double x) { return x > 0; }
bool not_negative(double x) { return x >= 0; }
bool probability(double x) { return x > 0 && x < 1; }
bool share(double x) { return x >= 0 && x <= 1; }
bool momentum(double x) { return x >= 0 && x < 1; }
bool below_half(double x) { return x >= 0 && x < 0.5; }

// The name of an architecture in a list, or of a residual network of any depth.
Field model_name(std::string& value) {
  std::vector<std::string> names = architecture_names();
  names.insert(names.end(), {"layers", ""});
  Field field = name_choice("model.name", value, names);
  field.set = [&value, names](const toml::node& node) {
    const std::string name = to_string(node);
    const std::string why = depth_refusal(name);
    if (!why.empty()) throw Error("{}", why);
    if (!is_residual_network(name) && std::ranges::find(names, name) == names.end()) {
      throw Error("must be {}, layers, or of another depth: resnetN, wrn-D-K{}",
                  fmt::join(architecture_names(), ", "), suggest(name, names));
    }
    value = name;
  };
  // The field of name_choice() would refuse names that are not in the list.
  field.show = [&value] { return show_string(value); };
  return field;
}

// The key that version 0.1 had in place of [server]: 0 is the plain average, other values the heavy
// ball.
Field server_momentum(ServerOptions& server) {
  const auto as_number = [](double& beta) {
    return number("", beta, momentum, "must be in [0, 1)");
  };
  const auto set = [&server, as_number](const toml::node& node) {
    double beta = 0;
    as_number(beta).set(node);
    if (server.optimizer != "average" && server.optimizer != "momentum") {
      throw Error("server.optimizer is {:?}; leave train.server_momentum out", server.optimizer);
    }
    server.optimizer = beta == 0 ? "average" : "momentum";
    if (beta > 0) server.momentum = beta;
  };
  const auto show = [&server, as_number] {
    double beta = server.optimizer == "momentum" ? server.momentum : 0;
    return as_number(beta).show();
  };
  return {"train.server_momentum", set, show, /*is_text=*/false, /*is_alias=*/true};
}

std::vector<std::pair<std::string, const NoiseLaw*>> laws_by_option() {
  std::vector<std::pair<std::string, const NoiseLaw*>> laws;
  for (const KnownLaw& known : known_laws()) {
    if (!known.option.empty()) laws.emplace_back(known.option, &known.law);
  }
  return laws;
}

}  // namespace

std::vector<Field> training_fields(Experiment& e) {
  LocalOptions& local = e.train.local;
  ServerOptions& server = e.train.server;
  AggregateOptions& aggregate = e.train.aggregate;
  ByzantineOptions& byzantine = e.train.byzantine;
  return {
      seed("seed", e.seed, e.seed_is_random),
      name_choice("data.name", e.data.name, data_sources().names()),
      path("data.root", e.data.root),
      boolean("data.augment", e.data.augment),
      count("data.held_out", e.data.held_out, 0),
      choice<PartitionKind>("partition.kind", e.partition.kind,
                            {{"major-class", PartitionKind::kMajorClass},
                             {"iid", PartitionKind::kIid},
                             {"dirichlet", PartitionKind::kDirichlet},
                             {"shards", PartitionKind::kShards},
                             {"file", PartitionKind::kFile}}),
      count("partition.clients", e.partition.clients, 1, 1'000'000),
      count("partition.samples_per_client", e.partition.samples_per_client, 1),
      number("partition.gamma", e.partition.gamma, share, "must be from 0 to 1"),
      number("partition.alpha", e.partition.alpha, positive, "must be positive"),
      count("partition.shards", e.partition.shards, 1),
      path("partition.file", e.partition.file),
      count("groups.count", e.groups.count, 1, kMaxGroups),
      count("groups.number", e.groups.number, 0, kMaxGroups),
      model_name(e.model.name),
      numbers("model.mean", e.model.mean, false),
      numbers("model.sd", e.model.sd, true),
      layers("model.layers", e.model.layers),
      number("smoothing.sigma", e.smoothing.sigma, positive, "must be positive"),
      count("smoothing.m", e.smoothing.m, 1),
      choice<Estimator>("attack.estimator", e.attack.estimator,
                        {{"stochastic", Estimator::kStochastic},
                         {"one-point", Estimator::kOnePoint},
                         {"two-point", Estimator::kTwoPoint}}),
      count("attack.steps", e.attack.steps, 1),
      number("attack.epsilon", e.attack.epsilon, not_negative, "must not be negative"),
      automatic("attack.step_size", e.attack.step_size),
      boolean("attack.normalize", e.attack.normalize),
      count("attack.warmup_rounds", e.attack.warmup_rounds, 0),
      boolean("attack.measure_cosine", e.attack.measure_cosine),
      choice<Mode>("train.mode", e.train.mode,
                   {{"federated", Mode::kFederated}, {"centralized", Mode::kCentralized}}),
      choice<Method>("train.method", e.train.method, method_names()),
      count("train.rounds", e.train.rounds, 1),
      count("train.clients_per_round", e.train.clients_per_round, 1, kMostWide),
      choice<Schedule>("train.schedule", e.train.schedule,
                       {{"constant", Schedule::kConstant},
                        {"step", Schedule::kStep},
                        {"cosine", Schedule::kCosine}}),
      rising_counts("train.milestones", e.train.milestones, 1),
      number(
          "train.decay", e.train.decay, [](double v) { return v > 0 && v <= 1; },
          "must be positive and at most 1"),
      server_momentum(server),
      count("train.evaluate_every", e.train.evaluate_every, 0),
      count("train.checkpoint_every", e.train.checkpoint_every, 1),
      count("train.local.steps", local.steps, 1),
      count("train.local.batch", local.batch, 1),
      count("train.local.passes", local.passes, 1),
      number("train.local.learning_rate", local.learning_rate, positive, "must be positive"),
      number(
          "train.local.decay", local.decay, [](double v) { return v >= 0 && v <= 1; },
          "must be from 0 to 1"),
      number("train.local.momentum", local.momentum, momentum, "must be in [0, 1)"),
      number("train.local.weight_decay", local.weight_decay, not_negative, "must not be negative"),
      number("train.local.mu", local.mu, not_negative, "must not be negative"),
      boolean("train.local.calibrate", local.calibrate),
      name_choice("aggregate.kind", aggregate.kind, reductions().names()),
      number("aggregate.clip", aggregate.clip, not_negative, "must not be negative"),
      number("aggregate.trim", aggregate.trim, below_half, "must be in [0, 0.5)"),
      count("aggregate.assumed_bad", aggregate.assumed_bad, 0),
      count("aggregate.iterations", aggregate.iterations, 1),
      number(
          "aggregate.sfat", aggregate.sfat, [](double v) { return v >= 1; }, "must be at least 1"),
      name_choice("server.optimizer", server.optimizer, server_optimizers().names()),
      automatic("server.learning_rate", server.learning_rate),
      number("server.momentum", server.momentum, momentum, "must be in [0, 1)"),
      automatic_number("server.beta1", server.beta1, momentum, "must be in [0, 1)"),
      number("server.beta2", server.beta2, momentum, "must be in [0, 1)"),
      number("server.tau", server.tau, positive, "must be positive"),
      count("server.clusters", server.clusters, 1),
      count("server.average_from", server.average_from, 0),
      number("byzantine.share", byzantine.share, share, "must be from 0 to 1"),
      rising_counts("byzantine.clients", byzantine.clients, 0),
      choice<ByzantineKind>("byzantine.kind", byzantine.kind,
                            {{"sign-flip", ByzantineKind::kSignFlip},
                             {"noise", ByzantineKind::kNoise},
                             {"label-flip", ByzantineKind::kLabelFlip}}),
      number("byzantine.scale", byzantine.scale, not_negative, "must not be negative"),
      automatic_number("objective.lambda", e.objective.lambda, not_negative,
                       "must not be negative"),
      automatic_number("objective.eta", e.objective.eta, not_negative, "must not be negative"),
      choice<ExampleSource>(
          "objective.examples", e.objective.examples,
          {{"noise", ExampleSource::kNoise}, {"smoothadv", ExampleSource::kSmoothAdv}}),
      automatic_count("objective.steps", e.objective.steps),
      automatic_number("objective.step_size", e.objective.step_size, positive, "must be positive"),
      path("objective.teacher", e.objective.teacher),
      count("objective.teacher_votes", e.objective.teacher_votes, 1),
  };
}

std::vector<Field> experiment_fields(Experiment& e) {
  std::vector<Field> all = training_fields(e);
  const std::vector<Field> after_training = {
      count("certify.n0", e.certify.n0, 1, kMaxVotes),
      count("certify.n", e.certify.n, 1, kMaxVotes),
      number("certify.alpha", e.certify.alpha, is_level, kLevels),
      automatic("certify.sigma", e.certify.sigma),
      automatic_seed("certify.seed", e.certify.seed),
      choice<RadiusKind>(
          "certify.radius", e.certify.radius,
          {{"one-sided", RadiusKind::kOneSided}, {"multiclass", RadiusKind::kMulticlass}}),
      choice<const NoiseLaw*>("certify.noise", e.certify.noise, laws_by_option()),
      radii("certify.radii", e.certify.radii),
      number("certify.beta", e.certify.beta, probability, "must be between 0 and 1"),
      number("certify.plan", e.certify.plan, not_negative, "must not be negative"),
      count("certify.malicious", e.certify.malicious, 0, kMaxGroups),
      boolean("certify.only_correct", e.certify.only_correct),
      removed_flag("certify.noise_bank",
                   "images no longer share their draws; leave it out, or certify by version 0.2"),
      count("certify.every", e.certify.every, 1),
      count("certify.limit", e.certify.limit, 0),
      boolean("log.tensorboard", e.log.tensorboard),
  };
  all.insert(all.end(), after_training.begin(), after_training.end());
  return all;
}

}  // namespace fedsmooth
