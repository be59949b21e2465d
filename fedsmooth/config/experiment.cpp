#include "fedsmooth/config/experiment.h"

#include <algorithm>
#include <numeric>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/config/experiment_toml.h"
#include "fedsmooth/config/sweep.h"
#include "fedsmooth/data/data_source.h"
#include "fedsmooth/smoothing/exact_noise.h"

namespace fedsmooth {
namespace {

constexpr int64_t kMaxDots = 4096;

bool positive(double x) { return x > 0; }
bool not_negative(double x) { return x >= 0; }
bool probability(double x) { return x > 0 && x < 1; }
bool share(double x) { return x >= 0 && x <= 1; }
bool momentum(double x) { return x >= 0 && x < 1; }
bool below_half(double x) { return x >= 0 && x < 0.5; }

// One of a list, or a ResNet of any depth.
Field model_name(std::string& value) {
  std::vector<std::string> names = architecture_names();
  names.insert(names.end(), {"layers", ""});
  Field field = name_choice("model.name", value, names);
  field.set = [&value, set_listed = field.set](const toml::node& node) {
    if (node.is_string() && is_resnet(to_string(node))) {
      value = to_string(node);
    } else {
      set_listed(node);
    }
  };
  field.show = [&value] { return show_string(value); };  // the list does not have every ResNet
  return field;
}

// What 0.1 had in place of [server]: 0 for the plain average, else the heavy ball.
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

// The whole format: every key with its type and range.
std::vector<Field> fields(Experiment& e) {
  LocalOptions& local = e.train.local;
  ServerOptions& server = e.train.server;
  AggregateOptions& aggregate = e.train.aggregate;
  ByzantineOptions& byzantine = e.train.byzantine;
  return {
      seed("seed", e.seed, e.seed_is_random),
      name_choice("data.name", e.data.name, data_sources().names()),
      text("data.root", e.data.root),
      boolean("data.augment", e.data.augment),
      count("data.held_out", e.data.held_out, 0),
      choice<PartitionKind>("partition.kind", e.partition.kind,
                            {{"major-class", PartitionKind::kMajorClass},
                             {"iid", PartitionKind::kIid},
                             {"dirichlet", PartitionKind::kDirichlet},
                             {"shards", PartitionKind::kShards},
                             {"file", PartitionKind::kFile}}),
      count("partition.clients", e.partition.clients, 1),
      count("partition.samples_per_client", e.partition.samples_per_client, 1),
      number("partition.gamma", e.partition.gamma, share, "must be from 0 to 1"),
      number("partition.alpha", e.partition.alpha, positive, "must be positive"),
      count("partition.shards", e.partition.shards, 1),
      text("partition.file", e.partition.file),
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
      count("train.clients_per_round", e.train.clients_per_round, 1),
      choice<Schedule>("train.schedule", e.train.schedule,
                       {{"constant", Schedule::kConstant},
                        {"step", Schedule::kStep},
                        {"cosine", Schedule::kCosine}}),
      rising_counts("train.milestones", e.train.milestones),
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
      number("byzantine.share", byzantine.share, share, "must be from 0 to 1"),
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
      text("objective.teacher", e.objective.teacher),
      count("objective.teacher_votes", e.objective.teacher_votes, 1),
      count("certify.n0", e.certify.n0, 1, kMaxVotes),
      count("certify.n", e.certify.n, 1, kMaxVotes),
      number("certify.alpha", e.certify.alpha, probability, "must be between 0 and 1"),
      automatic("certify.sigma", e.certify.sigma),
      automatic_seed("certify.seed", e.certify.seed),
      choice<RadiusKind>(
          "certify.radius", e.certify.radius,
          {{"one-sided", RadiusKind::kOneSided}, {"multiclass", RadiusKind::kMulticlass}}),
      choice<NoiseKind>("certify.noise", e.certify.noise,
                        {{"float", NoiseKind::kFloat}, {"exact", NoiseKind::kExact}}),
      radii("certify.radii", e.certify.radii),
      number("certify.beta", e.certify.beta, probability, "must be between 0 and 1"),
      number("certify.plan", e.certify.plan, not_negative, "must not be negative"),
      boolean("certify.only_correct", e.certify.only_correct),
      boolean("certify.noise_bank", e.certify.noise_bank),
      count("certify.every", e.certify.every, 1),
      count("certify.limit", e.certify.limit, 0),
      boolean("log.tensorboard", e.log.tensorboard),
  };
}

const Field* find_field(const std::vector<Field>& all, const std::string& key) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Field& field) { return field.key == key; });
  return found == all.end() ? nullptr : &*found;
}

// "train" and "train.local" for the key train.local.steps.
std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const std::string& key : experiment_keys()) {
    for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
      names.push_back(key.substr(0, dot));
    }
  }
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string suggestion(const std::string& key, const std::vector<std::string>& candidates) {
  std::string near = nearest(key, candidates);
  if (near.empty()) near = key_ending_in(key);
  return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

Error unknown_key(const std::string& key, const std::vector<std::string>& candidates) {
  return Error("unknown key {:?}{}", key, suggestion(key, candidates));
}

void read_table(const toml::table& table, const std::string& prefix, const std::string& name,
                Experiment& experiment) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    const bool section = contains(section_names(), path);
    if (section && node.is_table()) {
      read_table(*node.as_table(), path + ".", name, experiment);
      continue;
    }
    try {
      if (section) throw Error("{}: must be a table", path);
      if (node.is_table() && !contains(experiment_keys(), path))
        throw unknown_key(path, section_names());
      set_from_toml(experiment, path, node);
    } catch (const Error& error) {
      throw Error("{}:{}: {}", name, key.source().begin.line, error.what());
    }
  }
}

// toml++ recurses into dotted keys, a.a.a.a, without a limit of its own. Counting all dots is
// crude, but a ResNet-110 written as layers has only about 450.
void refuse_deep_keys(std::string_view text, const std::string& where) {
  const int64_t dots = std::count(text.begin(), text.end(), '.');
  if (dots > kMaxDots) throw Error("{}: {} dots, at most {} are allowed", where, dots, kMaxDots);
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& name) {
  refuse_deep_keys(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');  // it quotes what it saw, line ends included
    throw Error("{}:{}: {}", name, error.source().begin.line, what);
  }
}

void set_from_toml(Experiment& experiment, const std::string& key, const toml::node& node) {
  const std::vector<Field> all = fields(experiment);
  const Field* field = find_field(all, key);
  if (field == nullptr) throw unknown_key(key, experiment_keys());
  try {
    field->set(node);
  } catch (const Error& error) {
    throw Error("{}: {}", key, error.what());
  }
}

std::string key_ending_in(const std::string& word) {
  for (const std::string& key : experiment_keys()) {
    if (key.ends_with("." + word)) return key;
  }
  return {};
}

double certified_sigma(const Experiment& e) {
  return e.certify.sigma > 0 ? e.certify.sigma : e.smoothing.sigma;
}

uint64_t certified_seed(const Experiment& e) { return e.certify.seed.value_or(e.seed); }

void check_certification(const Experiment& e) {
  check_certify_options(e.certify, certified_sigma(e));
  if (e.certify.noise == NoiseKind::kExact) ExactNoise{certified_sigma(e)};
}

Experiment experiment_from_toml(const toml::table& table, const std::string& name,
                                Experiment base) {
  read_table(table, "", name, base);
  return base;
}

Experiment parse_experiment(std::string_view text, const std::string& name, Experiment base) {
  const toml::table table = parse_toml(text, name);
  if (table.contains("sweep")) {
    throw Error("{}: has a [sweep] of {} experiments; run them by `fedsmooth sweep`", name,
                expand(parse_sweep(text, name)).size());
  }
  return experiment_from_toml(table, name, std::move(base));
}

Experiment read_experiment(const std::filesystem::path& path) {
  return parse_experiment(read_file(path), path.string());
}

std::string format_experiment(const Experiment& experiment) {
  Experiment copy = experiment;
  std::string out, section;
  for (const Field& field : fields(copy)) {
    if (field.is_alias) continue;
    const size_t dot = field.key.rfind('.');
    const std::string head = dot == std::string::npos ? "" : field.key.substr(0, dot);
    if (head != section) out += fmt::format("\n[{}]\n", section = head);
    out += fmt::format("{} = {}\n", field.key.substr(dot + 1), field.show());
  }
  return out;
}

void set_key(Experiment& experiment, const std::string& key, const std::string& value) {
  const std::vector<Field> all = fields(experiment);
  const Field* field = find_field(all, key);
  if (field == nullptr) throw Error("--{}: unknown key{}", key, suggestion(key, experiment_keys()));
  // A second line would be a second key.
  if (value.find_first_of("\r\n") != std::string::npos || !is_utf8(value)) {
    throw Error("--{}={:?}: must be one line of UTF-8", key, value);
  }
  refuse_deep_keys(value, "--" + key);
  const bool quoted = !value.empty() && (value[0] == '"' || value[0] == '\'');
  toml::table table;
  table.insert_or_assign("value", value);
  if (!field->is_text || quoted) {
    try {
      table = toml::parse("value = " + value);
    } catch (const toml::parse_error&) {
      // A bare word is a string.
    }
  }
  try {
    field->set(*table.get("value"));
  } catch (const Error& error) {
    throw Error("--{}={}: {}", key, value, error.what());
  }
}

void apply_overrides(Experiment& experiment, const Overrides& overrides) {
  for (const auto& [key, value] : overrides) set_key(experiment, key, value);
}

std::string show_key(const Experiment& experiment, const std::string& key) {
  Experiment copy = experiment;
  const std::vector<Field> all = fields(copy);
  const Field* field = find_field(all, key);
  check(field != nullptr, "show_key: no key {}", key);
  return field->show();
}

std::vector<std::string> experiment_keys() {
  Experiment any;
  std::vector<std::string> keys;
  for (const Field& field : fields(any)) keys.push_back(field.key);
  return keys;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t fewest = std::max<size_t>(2, word.size() / 3) + 1;  // a word further away does not help
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t replaced = diagonal + (word[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    if (row.back() < fewest) {
      fewest = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace fedsmooth
