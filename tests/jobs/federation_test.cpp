// A federation in one process: the server's rounds are handed to nodes by a plain function.
#include "fedsmooth/jobs/federation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "fedsmooth/base/file.h"
#include "fedsmooth/records/run.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

std::vector<float> flatten(const Weights& weights) {
  std::vector<float> values;
  for (const Array& w : weights) values.insert(values.end(), w.floats(), w.floats() + w.count());
  return values;
}

using Words = std::vector<long long>;

// Answers to rounds that are asked together.
template <typename AskOne>
auto one_by_one(AskOne ask) {
  return [ask](const std::vector<jobs::AskedRound>& rounds) {
    std::vector<Words> all;
    for (const jobs::AskedRound& round : rounds) all.push_back(ask(round));
    return all;
  };
}

// One node stands for all, as nodes keep nothing from one task to the next.
class FederationTest : public JobTest {
 protected:
  static Experiment experiment() {
    Experiment e = small_experiment();
    e.train.clients_per_round = 3;
    e.train.evaluate_every = 0;
    return e;
  }
  static void SetUpTestSuite() {
    jobs::Context context;
    context.device = "cpu";
    context.threads = 1;
    node_ = std::make_unique<jobs::Node>(experiment(), context);
  }
  static void TearDownTestSuite() { node_.reset(); }

  std::string train_here() {
    return jobs::train({experiment_, path("here")}, context_).model_sha256;
  }

  // Clients in turn to `count` nodes, whose answers are added from the last to the first.
  static jobs::Federation share_out(int count, bool lose_last = false) {
    const jobs::NodeFacts facts = node_->facts();
    return {one_by_one([count, lose_last](const jobs::AskedRound& round) {
              jobs::RoundSum sum(round);
              for (int i = count - 1 - lose_last; i >= 0; --i) {
                std::vector<int64_t> clients;
                for (size_t k = i; k < round.clients.size(); k += count) {
                  clients.push_back(round.clients[k]);
                }
                sum.add(clients,
                        node_->run(round.t, round.total, clients, flatten(round.model.weights)));
              }
              return sum.total();
            }),
            facts.device,
            facts.arithmetic,
            {}};
  }

  jobs::TrainedRun train(const jobs::Federation& federation, const std::string& name) {
    jobs::TrainArguments arguments{experiment_, path(name)};
    arguments.federation = &federation;
    return jobs::train(arguments, context_);
  }

  static inline std::unique_ptr<jobs::Node> node_;
  Experiment experiment_ = experiment();
};

TEST_F(FederationTest, AnyNumberOfNodesGivesTheBitsOfTrain) {
  const std::string here = train_here();
  EXPECT_EQ(train(share_out(1), "one").model_sha256, here);
  EXPECT_EQ(train(share_out(3), "three").model_sha256, here);
  EXPECT_EQ(read_file(path("three") / "clients.tsv"), read_file(path("here") / "clients.tsv"));
  const auto there = read_rounds(path("three") / "rounds.tsv");
  const auto rows = read_rounds(path("here") / "rounds.tsv");
  ASSERT_EQ(there.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(there[i].loss, rows[i].loss);
}

TEST_F(FederationTest, ClientsOfASilentNodeAreCountedAsDropped) {
  train(share_out(3, /*lose_last=*/true), "lost");
  for (const RoundRow& row : read_rounds(path("lost") / "rounds.tsv")) EXPECT_EQ(row.dropped, 1);
}

TEST_F(FederationTest, ARoundThatIsGivenUpLeavesTheWeights) {
  jobs::Federation federation = share_out(1);
  std::vector<std::vector<float>> weights;
  federation.ask = one_by_one([&, ask = federation.ask](const jobs::AskedRound& round) {
    weights.push_back(flatten(round.model.weights));
    return round.t == 1 ? Words() : ask({round}).front();
  });
  train(federation, "given-up");
  ASSERT_EQ(weights.size(), 3);
  EXPECT_NE(weights[1], weights[0]);
  EXPECT_EQ(weights[2], weights[1]);
  const auto rows = read_rounds(path("given-up") / "rounds.tsv");
  EXPECT_EQ(rows[1].dropped, 3);
  EXPECT_TRUE(std::isnan(rows[1].loss));
  EXPECT_EQ(rows[2].dropped, 0);
}

// Nodes that hold what clients hold in path("partition.tsv"): the images held[k], or none.
class PrivateNodesTest : public FederationTest {
 protected:
  jobs::Federation open_nodes(const std::vector<std::vector<int64_t>>& held) {
    const Dataset all = load_dataset(experiment_.data, Split::kTrain);
    std::string tsv;
    jobs::Federation federation;
    federation.device = "cpu";
    nodes_.resize(held.size());
    for (int64_t k = 0; k < std::ssize(held); ++k) {
      federation.images.push_back(std::ssize(held[k]));
      if (held[k].empty()) continue;
      jobs::OwnImages own{{all.images.pick(held[k]), {}, all.class_names}, k};
      for (const int64_t image : held[k]) {
        tsv += fmt::format("{}\t{}\n", k, image);
        own.images.labels.push_back(all.label(image));
      }
      nodes_[k] = std::make_unique<jobs::Node>(experiment_, own, context_);
      EXPECT_EQ(nodes_[k]->facts().data_sha256, "");
      EXPECT_EQ(nodes_[k]->facts().images, federation.images[k]);
    }
    write_file(path("partition.tsv"), tsv);
    federation.ask = one_by_one([this](const jobs::AskedRound& round) {
      jobs::RoundSum sum(round);
      for (const int64_t k : round.clients) {
        asked_.insert(k);
        if (k == silent_) continue;
        sum.add({k}, nodes_.at(k)->run(round.t, round.total, {k}, flatten(round.model.weights)));
      }
      return sum.clients().empty() ? Words() : sum.total();
    });
    return federation;
  }

  // The same images in one place.
  std::string train_partition() {
    experiment_.partition.kind = PartitionKind::kFile;
    experiment_.partition.file = path("partition.tsv");
    return train_here();
  }

  std::vector<std::unique_ptr<jobs::Node>> nodes_;
  std::set<int64_t> asked_;
  int64_t silent_ = -1;  // does not answer
};

TEST_F(PrivateNodesTest, GiveTheBitsOfTheSameImagesInOnePlace) {
  const jobs::Federation nodes = open_nodes({{3, 1, 8, 9, 12}, {0, 5, 30}, {7, 2, 11, 4}});
  const std::string apart = train(nodes, "apart").model_sha256;
  EXPECT_FALSE(std::filesystem::exists(path("apart") / "clients.tsv"));
  EXPECT_EQ(apart, train_partition());
}

TEST_F(PrivateNodesTest, NumbersWithoutANodeAreNotTrained) {
  const jobs::Federation nodes = open_nodes({{3, 1, 8}, {}, {7, 2}, {}, {11, 4, 6}});
  train(nodes, "apart");
  EXPECT_EQ(asked_, (std::set<int64_t>{0, 2, 4}));
  experiment_.train.clients_per_round = 4;
  expect_error([&] { train(nodes, "more"); }, "train.clients_per_round=4: there are 3 clients");
}

class GroupsOfNodesTest : public PrivateNodesTest {
 protected:
  void SetUp() override {
    PrivateNodesTest::SetUp();
    experiment_.groups.count = 2;
    for (int64_t k = 0; k < 8; ++k) held_.push_back({5 * k, 5 * k + 3, 5 * k + 1});
  }
  std::string model_of(const std::string& run, int64_t group) {
    return read_file(group_folder(path(run), group) / "model.safetensors");
  }

  std::vector<std::vector<int64_t>> held_;
};

TEST_F(GroupsOfNodesTest, GroupsHaveTheBitsOfOneProcessAndAreAskedTogether) {
  jobs::Federation nodes = open_nodes(held_);
  std::vector<size_t> together;
  nodes.ask = [&, ask = nodes.ask](const std::vector<jobs::AskedRound>& rounds) {
    together.push_back(rounds.size());
    return ask(rounds);
  };
  const std::string apart = train(nodes, "apart").model_sha256;
  EXPECT_EQ(together, std::vector<size_t>(experiment_.train.rounds, 2));
  EXPECT_EQ(apart, train_partition());
  for (const int64_t g : {1, 2}) EXPECT_EQ(model_of("apart", g), model_of("here", g));
  EXPECT_NE(model_of("apart", 1), model_of("apart", 2));
}

TEST_F(GroupsOfNodesTest, ASilentOrMissingNodeChangesNothingInAnotherGroup) {
  experiment_.train.clients_per_round = 8;
  const jobs::Federation nodes = open_nodes(held_);
  train(nodes, "all");
  silent_ = clients_of_group({2, 1}, 8, experiment_.seed).front();
  train(nodes, "silent");
  held_[silent_].clear();
  train(open_nodes(held_), "missing");
  for (const std::string run : {"silent", "missing"}) {
    EXPECT_EQ(model_of(run, 2), model_of("all", 2));
    EXPECT_NE(model_of(run, 1), model_of("all", 1));
  }
}

TEST_F(FederationTest, ARunResumesOnOtherNodes) {
  const std::string here = train_here();
  int rounds = 0;
  context_.stopped = [&] { return rounds > 0; };
  jobs::Federation federation = share_out(2);
  jobs::TrainArguments arguments{experiment_, path("resumed")};
  arguments.federation = &federation;
  arguments.on_round = [&](const RoundRow&) { ++rounds; };
  experiment_.train.checkpoint_every = 1;
  EXPECT_THROW(jobs::train(arguments, context_), Interrupted);
  context_.stopped = [] { return false; };
  federation = share_out(3);
  arguments.resume = true;
  EXPECT_EQ(jobs::train(arguments, context_).model_sha256, here);
}

TEST_F(FederationTest, WhatCannotBeMeantIsRefused) {
  jobs::Federation federation = share_out(1);
  std::vector<float> weights;
  federation.ask = one_by_one([&, ask = federation.ask](const jobs::AskedRound& round) {
    weights = flatten(round.model.weights);
    jobs::RoundSum sum(round);
    expect_error([&] { sum.total(); }, "no node answered");
    const std::vector<int64_t> first = {round.clients.front()};
    const auto words = node_->run(round.t, round.total, first, weights);
    sum.add(first, words);
    expect_error([&] { sum.add(first, words); }, "answered for already");
    expect_error([&] { sum.add({99}, words); }, "client 99");
    expect_error([&] { sum.add({round.clients.back()}, std::vector<long long>(7)); }, "7 words");
    expect_error([&] { sum.add_masked({round.clients.back()}, {}); }, "0 words");
    sum.add_masked({round.clients.back()}, std::vector<long long>(words.size(), 1LL << 60));
    expect_error([&] { sum.total(); }, "dropped");
    return ask({round}).front();
  });
  train(federation, "run");
  jobs::Node& node = *node_;
  expect_error([&] { node.run(0, 60, {0, 99}, weights); }, "client 99");
  expect_error([&] { node.run(0, 60, {}, weights); }, "0 clients");
  expect_error([&] { node.run(0, 10, {0}, weights); }, "of a cohort with 10");
  expect_error([&] { node.run(3, 60, {0}, weights); }, "round 4");
  expect_error([&] { node.run(0, 60, {0}, std::vector<float>(weights.size() - 1)); }, "weights");
  expect_error([&] { node.run(0, 60, {0}, std::vector<float>(weights.size() + 1)); }, "weights");
}

}  // namespace
}  // namespace fedsmooth
