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

/// Adds up the answers of nodes to a round.
class RoundSum {
 public:
  explicit RoundSum(const AskedRound& round);

  /// Adds the words of a node that ran these clients, each client once. If no honest node can have
  /// sent them, throws an Error and adds nothing.
  void add(const std::vector<int64_t>& clients, const std::vector<long long>& words);
  /// Adds masked words, modulo 2^64. They can be checked only once the words of all nodes whose
  /// masks cancel have been added, so that total() throws the Error.
  void add_masked(const std::vector<int64_t>& clients, const std::vector<long long>& words);

  /// Returns the sum. Clients of the round without an answer count as dropped. Throws an Error if
  /// no node answered, or if no honest nodes can have sent these words.
  std::vector<long long> total() const;
  const std::vector<int64_t>& clients() const { return clients_; }

 private:
  std::vector<double> shares_of(const std::vector<int64_t>& clients) const;
  void take(const std::vector<int64_t>& clients, const std::vector<long long>& words);

  AskedRound round_;
  SumSizes sizes_;
  std::vector<int64_t> clients_;  // clients with an answer
  std::vector<long long> words_;
};

/// A node's own images, which are those of client `client`. The class names must be the server's.
struct OwnImages {
  Dataset images;
  int64_t client = 0;
};

/// The facts about a node on which server and nodes must agree, and its number of images.
struct NodeFacts {
  std::string version, commit;
  std::string device, arithmetic;  // decide how results are rounded: see Provenance
  std::string data_sha256;         // empty if the images are the node's own
  int64_t images = 0;
};

/// The node's side of a federation. One thread at a time may use it.
class Node {
 public:
  /// Makes a node that has the experiment's data.
  Node(const Experiment& experiment, const Context& context);
  /// Makes a node with images of its own. From the experiment's [data] it uses only the name, which
  /// decides the normalisation.
  Node(const Experiment& experiment, const OwnImages& own, const Context& context);
  ~Node();

  NodeFacts facts() const;
  /// Trains these clients in round `t` (from 0), whose cohort holds `total` images, from `weights`
  /// (all tensors, one after another) and returns their words. Throws an Error for impossible
  /// arguments.
  std::vector<long long> run(int64_t t, int64_t total, const std::vector<int64_t>& clients,
                             const std::vector<float>& weights);

 private:
  Experiment experiment_;
  std::unique_ptr<TrainingContext> setting_;
  std::unique_ptr<Partition> partition_;
  bool own_ = false;
};

}  // namespace fedsmooth::jobs
