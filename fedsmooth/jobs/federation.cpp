#include "fedsmooth/jobs/federation.h"

#include <algorithm>
#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/distributed/remote_executor.h"
#include "fedsmooth/distributed/round_words.h"
#include "fedsmooth/jobs/training/clients.h"
#include "fedsmooth/jobs/training/group_runs.h"
#include "fedsmooth/jobs/training/training_context.h"

namespace fedsmooth::jobs {
namespace {

Weights unflatten(const std::vector<float>& values, const Network& network) {
  Weights weights;
  size_t next = 0;
  for (const Parameter& p : parameters(network)) {
    Array w(p.shape);
    if (next + w.count() > values.size()) break;
    std::copy_n(values.begin() + static_cast<int64_t>(next), w.count(), w.floats());
    next += w.count();
    weights.push_back(w);
  }
  if (next != values.size() || weights.size() != parameters(network).size()) {
    throw Error("weights: {} values are not those of the network", values.size());
  }
  return weights;
}

std::vector<int64_t> count_up(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Returns a partition in which client `k` holds all images, and the clients before it, whose images
// are on other nodes, none.
std::unique_ptr<Partition> only_client(int64_t k, int64_t images) {
  constexpr int64_t kMostNodes = 1'000'000;
  if (k < 0 || k >= kMostNodes) throw Error("client={}: must be from 0 to {}", k, kMostNodes - 1);
  std::vector<std::vector<int64_t>> all(k + 1);
  all.back() = count_up(images);
  return std::make_unique<Partition>(std::move(all));
}

void check_own(const Dataset& images) {
  if (images.size() == 0) throw Error("data: no images");
  for (const int64_t label : images.labels) {
    if (label < 0 || label >= images.classes()) {
      throw Error("data: label {}; there are {} classes", label, images.classes());
    }
  }
}

const Experiment& without_groups(const Experiment& experiment) {
  refuse_groups_on_shared_nodes(experiment);
  return experiment;
}

}  // namespace

RoundSum::RoundSum(const AskedRound& round)
    : round_(round), sizes_(round.model.weights, parameters(round.model.network)) {}

std::vector<double> RoundSum::shares_of(const std::vector<int64_t>& clients) const {
  std::vector<double> shares;
  for (const int64_t client : clients) {
    const auto found = std::lower_bound(round_.clients.begin(), round_.clients.end(), client);
    if (found == round_.clients.end() || *found != client) {
      throw Error("client {} is not in round {}", client, round_.t + 1);
    }
    if (std::find(clients_.begin(), clients_.end(), client) != clients_.end()) {
      throw Error("client {} was answered for already", client);
    }
    shares.push_back(round_.shares[found - round_.clients.begin()]);
  }
  return shares;
}

void RoundSum::take(const std::vector<int64_t>& clients, const std::vector<long long>& words) {
  add_words(words, words_);
  clients_.insert(clients_.end(), clients.begin(), clients.end());
}

void RoundSum::add(const std::vector<int64_t>& clients, const std::vector<long long>& words) {
  check_words(words, sizes_, shares_of(clients));
  check_telemetry(words);
  take(clients, words);
}

void RoundSum::add_masked(const std::vector<int64_t>& clients,
                          const std::vector<long long>& words) {
  shares_of(clients);
  const size_t expected = word_count(sizes_.words());
  if (words.size() != expected) throw Error("{} words, expected {}", words.size(), expected);
  take(clients, words);
}

std::vector<long long> RoundSum::total() const {
  if (clients_.empty()) throw Error("round {}: no node answered", round_.t + 1);
  RoundSum all(round_);
  check_words(words_, sizes_, all.shares_of(clients_));
  std::vector<long long> words = words_;
  add_dropped(std::ssize(round_.clients) - std::ssize(clients_), sizes_.words(), words);
  return words;
}

Node::Node(const Experiment& experiment, const Context& context)
    : experiment_(without_groups(experiment)),
      setting_(
          std::make_unique<TrainingContext>(std::vector{TrainArguments{experiment_, ""}}, context)),
      partition_(std::make_unique<Partition>(make_partition(experiment_, setting_->train))) {}

Node::Node(const Experiment& experiment, const OwnImages& own, const Context& context)
    : experiment_(experiment), own_(true) {
  check_own(own.images);
  setting_ = std::make_unique<TrainingContext>(experiment_, own.images, context);
  partition_ = only_client(own.client, own.images.size());
}

Node::~Node() = default;

NodeFacts Node::facts() const {
  return {version(),
          commit(),
          setting_->chosen.device,
          setting_->arithmetic,
          own_ ? "" : setting_->train_digest.get(),
          setting_->train.size()};
}

std::vector<long long> Node::run(int64_t t, int64_t total, const std::vector<int64_t>& clients,
                                 const std::vector<float>& weights) {
  int64_t held = 0;
  for (const int64_t client : clients) {
    if (client < 0 || client >= partition_->clients() || partition_->images(client).empty()) {
      throw Error("client {}: is not one of this node's", client);
    }
    held += std::ssize(partition_->images(client));
  }
  if (clients.empty() || held > total) {
    throw Error("{} clients with {} images, of a cohort with {}", clients.size(), held, total);
  }
  if (t < 0 || t >= experiment_.train.rounds) {
    throw Error("round {}: the experiment has {} rounds", t + 1, experiment_.train.rounds);
  }
  const NodeTask asked{t, total, clients, unflatten(weights, setting_->network)};
  return run_node_task(*setting_->chosen.executor, local_task(*setting_, experiment_),
                       train_options(*setting_, experiment_), *partition_, asked);
}

}  // namespace fedsmooth::jobs
