// A federation whose nodes are reached by a platform, such as Flower. The server trains into a run
// folder as train() does, but hands its rounds out; a node runs its part of a round's clients and
// answers with integers, which the server adds up. So the model has the bits of train(), for any
// number of nodes.
//
// Nodes either have the experiment's data, and run whichever clients they are asked for; or each
// has images of its own, which never leave it, and is one client.
#pragma once

#include <memory>
#include <vector>

#include "fedsmooth/federated/aggregate.h"
#include "fedsmooth/jobs/training.h"

namespace fedsmooth::jobs {

struct TrainingContext;

/// Adds up what nodes answered to a round.
class RoundSum {
 public:
  explicit RoundSum(const AskedRound& round);

  /// The words of a node that ran these clients, of which each counts once. An Error, and nothing
  /// is added, if no honest node can have sent them.
  void add(const std::vector<int64_t>& clients, const std::vector<long long>& words);
  /// The same for words that are masked, modulo 2^64: they mean nothing before those of all nodes
  /// whose masks cancel are there, and total() refuses what they add up to.
  void add_masked(const std::vector<int64_t>& clients, const std::vector<long long>& words);

  /// Clients that nobody answered for are counted as dropped.
  std::vector<long long> total() const;
  const std::vector<int64_t>& clients() const { return clients_; }

 private:
  std::vector<double> shares_of(const std::vector<int64_t>& clients) const;
  void take(const std::vector<int64_t>& clients, const std::vector<long long>& words);

  AskedRound round_;
  SumSizes sizes_;
  std::vector<int64_t> clients_;  // that were answered for
  std::vector<long long> words_;
};

/// Images that a node has for itself, as the client of that number. The class names are the
/// server's.
struct OwnImages {
  Dataset images;
  int64_t client = 0;
};

/// What nodes and server must agree on for one result, and what only the server is told.
struct NodeFacts {
  std::string version, commit;
  std::string device, arithmetic;  // what rounds: see Provenance
  std::string data_sha256;         // empty if the images are the node's own
  int64_t images = 0;
};

/// A node's side.
class Node {
 public:
  /// With the experiment's data.
  Node(const Experiment& experiment, const Context& context);
  /// With images of its own; of the experiment's data only the name counts, for the normalisation.
  Node(const Experiment& experiment, const OwnImages& own, const Context& context);
  ~Node();

  NodeFacts facts() const;
  /// The words of these clients in round `t` (from 0), whose cohort holds `total` images, starting
  /// from these weights, one after another. An Error for what cannot be meant.
  std::vector<long long> run(int64_t t, int64_t total, const std::vector<int64_t>& clients,
                             const std::vector<float>& weights);

 private:
  Experiment experiment_;
  std::unique_ptr<TrainingContext> setting_;
  std::unique_ptr<Partition> partition_;
  bool own_ = false;
};

}  // namespace fedsmooth::jobs
