// Runs of several groups: training, certificates against malicious clients, what is refused.
#include "fedsmooth/jobs/training/group_runs.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "fedsmooth/base/file.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/jobs/compare.h"
#include "fedsmooth/jobs/dry_run.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/jobs/merge.h"
#include "fedsmooth/jobs/recertify.h"
#include "fedsmooth/jobs/report.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/records/run.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/threats.h"
#include "tests/identities.h"
#include "tests/jobs/job_folder.h"
#include "tests/refusal.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class GroupRunsTest : public TrainingJobTest {
 protected:
  void SetUp() override {
    TrainingJobTest::SetUp();
    experiment_.groups.count = 4;
    experiment_.partition.clients = 16;
    experiment_.data.augment = false;
  }

  std::vector<std::string> sha256s(const std::string& name) const {
    std::vector<std::string> found;
    for (int64_t g = 1; g <= experiment_.groups.count; ++g) {
      found.push_back(sha256(read_file(group_folder(path(name), g) / "model.safetensors")));
    }
    return found;
  }

  fs::path certify(const std::string& name, const Overrides& more = {},
                   jobs::CertifyArguments a = {}) {
    a.path = path(name).string();
    return jobs::certify(a, more, context_);
  }

  static std::vector<std::string> rows(const fs::path& table) { return rows_without_times(table); }
};

TEST_F(GroupRunsTest, EachGroupIsARunOfItsOwnAndTheFolderIsDoneLast) {
  const std::string digest = train("run");
  EXPECT_EQ(digest, digest_groups(sha256s("run")));
  EXPECT_EQ(trained_sha256(path("run")), digest);
  EXPECT_TRUE(open_run(path("run")).done());
  EXPECT_FALSE(fs::exists(path("run") / "model.safetensors"));
  // Alone, a group ends as it does beside the others.
  Experiment alone = jobs::experiment_of_group(experiment_, 3);
  EXPECT_EQ(jobs::train({alone, path("alone")}, context_).model_sha256, sha256s("run")[2]);
  // Its network is no other group's.
  const std::vector<std::string> all = sha256s("run");
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(train("run"), digest);  // done already
}

// Trains ten runs.
using SlowGroupRunsTest = GroupRunsTest;

TEST_F(SlowGroupRunsTest, OneMoreClientChangesTheModelOfOneGroupAlone) {
  const auto changed = [&](const std::string& name) {
    train(name);
    const std::vector<std::string> before = sha256s(name);
    const int64_t clients = experiment_.partition.clients;
    const int64_t its_group = group_of(clients, experiment_.groups.count, experiment_.seed);
    ++experiment_.partition.clients;
    if (experiment_.partition.kind == PartitionKind::kFile) {
      std::string more = read_file(experiment_.partition.file);
      for (int64_t i = 0; i < 20; ++i) more += fmt::format("{}\t{}\n", clients, 700 + i);
      write_file(path("more.tsv"), more);
      experiment_.partition.file = path("more.tsv").string();
    }
    train(name + "-more");
    const std::vector<std::string> after = sha256s(name + "-more");
    --experiment_.partition.clients;
    for (int64_t g = 1; g <= experiment_.groups.count; ++g) {
      EXPECT_EQ(after[g - 1] == before[g - 1], g != its_group) << name << " " << g;
    }
  };
  experiment_.train.clients_per_round = 100;  // every client of a group, so that it must change
  experiment_.train.rounds = 1;
  for (const auto& [name, kind] : {std::pair{"major", PartitionKind::kMajorClass},
                                   {"iid", PartitionKind::kIid},
                                   {"dirichlet", PartitionKind::kDirichlet}}) {
    experiment_.partition.kind = kind;
    changed(name);
  }
  experiment_.train.server.clusters = experiment_.groups.count = 2;
  experiment_.partition.kind = PartitionKind::kIid;
  changed("clusters");
  experiment_.train.server.clusters = 1;
  experiment_.groups.count = 4;
  std::string table;
  for (int64_t k = 0; k < 16; ++k) {
    for (int64_t i = 0; i < 20; ++i) table += fmt::format("{}\t{}\n", k, 20 * k + i);
  }
  write_file(path("clients.tsv"), table);
  experiment_.partition.kind = PartitionKind::kFile;
  experiment_.partition.file = path("clients.tsv").string();
  changed("file");
}

// Of both kinds: one that sends other weights, and one that trains on other labels.
TEST_F(GroupRunsTest, ABadClientChangesTheModelOfItsGroupAlone) {
  experiment_.train.clients_per_round = 100;
  experiment_.train.rounds = 1;
  train("clean");
  for (const auto& [name, kind] : {std::pair{"flipped-updates", ByzantineKind::kSignFlip},
                                   {"flipped-labels", ByzantineKind::kLabelFlip}}) {
    experiment_.train.byzantine = {.clients = {5}, .kind = kind};
    train(name);
    const int64_t its_group = group_of(5, experiment_.groups.count, experiment_.seed);
    for (int64_t g = 1; g <= experiment_.groups.count; ++g) {
      EXPECT_EQ(sha256s(name)[g - 1] == sha256s("clean")[g - 1], g != its_group) << name << g;
    }
  }
}

TEST_F(GroupRunsTest, ARunThatWasStoppedResumesToTheSameModels) {
  const std::string digest = train("whole");
  experiment_.train.checkpoint_every = 1;
  int64_t asked = 0;
  jobs::Context stopping = context_;
  stopping.stopped = [&asked] { return ++asked > 6; };
  EXPECT_THROW(jobs::train({experiment_, path("parts")}, stopping), Interrupted);
  EXPECT_FALSE(fs::exists(path("parts") / "DONE"));
  EXPECT_NE(
      refusal([&] { jobs::certify({path("parts").string()}, {}, context_); }).find("unfinished"),
      std::string::npos);
  experiment_.train.checkpoint_every = 10;
  EXPECT_NE(refusal([&] {
              Experiment other = experiment_;
              other.train.checkpoint_every = 1;
              other.seed = 9;
              jobs::train({other, path("parts"), true}, context_);
            }).find("another experiment"),
            std::string::npos);
  experiment_.train.checkpoint_every = 1;
  train("parts");
  EXPECT_EQ(sha256s("parts"), sha256s("whole"));
  EXPECT_EQ(trained_sha256(path("parts")), digest);
}

TEST_F(GroupRunsTest, AnEmptyGroupIsRefusedBeforeTheFirstRound) {
  experiment_.groups.count = 60;
  EXPECT_NE(refusal([&] { train("run"); }).find("none of the 16 clients is in group"),
            std::string::npos);
  for (int64_t g = 1; g <= 60; ++g) EXPECT_FALSE(fs::exists(group_folder(path("run"), g))) << g;
}

TEST_F(GroupRunsTest, WhatGroupsWouldShareIsRefusedByName) {
  const auto refuse = [&](const auto& change) {
    Experiment e = experiment_;
    change(e);
    return refusal([&] { jobs::train({e, path("x")}, context_); });
  };
  EXPECT_NE(refuse([](Experiment& e) { e.train.mode = Mode::kCentralized; }).find("centralized"),
            std::string::npos);
  EXPECT_NE(refuse([](Experiment& e) { e.train.method = Method::kCatRs; }).find("teacher"),
            std::string::npos);
  EXPECT_NE(refuse([](Experiment& e) { e.train.method = Method::kSun; }).find("table"),
            std::string::npos);
  EXPECT_NE(refuse([](Experiment& e) { e.partition.kind = PartitionKind::kShards; }).find("shards"),
            std::string::npos);
  EXPECT_NE(
      refuse([](Experiment& e) { e.certify.radius = RadiusKind::kMulticlass; }).find("one-sided"),
      std::string::npos);
  EXPECT_NE(refuse([](Experiment& e) { e.groups.number = 5; }).find("groups.count is 4"),
            std::string::npos);
  jobs::Federation nodes;
  EXPECT_NE(refusal([&] {
              jobs::train({experiment_, path("x"), false, {}, &nodes}, context_);
            }).find("not on nodes that share the clients"),
            std::string::npos);
  EXPECT_NE(refusal([&] { jobs::Node(experiment_, context_); }).find("use private nodes"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path("x")));
}

TEST_F(GroupRunsTest, CertificatesUseTheSeedThatWasDrawnAfterTraining) {
  train("run");
  const uint64_t drawn = drawn_certificate_seed(path("run"));
  EXPECT_NE(drawn, experiment_.seed);
  const fs::path table = certify("run");
  const CertificateIdentity identity = read_identity(table);
  EXPECT_EQ(identity.seed, drawn);
  EXPECT_EQ(identity.seed_given, false);
  EXPECT_EQ(identity.groups, 4);
  EXPECT_EQ(identity.malicious, 0);
  EXPECT_EQ(identity.model_sha256, digest_groups(sha256s("run")));
  for (const CertificateRow& row : read_certificates(table)) EXPECT_EQ(row.seed, drawn);
  const fs::path given = certify("run", {{"seed", "7"}}, {.out = path("given.tsv").string()});
  EXPECT_EQ(read_identity(given).seed, 7U);
  EXPECT_EQ(read_identity(given).seed_given, true);
}

TEST_F(GroupRunsTest, EveryNumberOfMaliciousClientsFollowsFromTheSameVotes) {
  train("run");
  const std::vector<CertificateRow> plain = read_certificates(certify("run"));
  const Overrides two = {{"certify.malicious", "2"}};
  const fs::path table = certify("run", two, {.out = path("two.tsv").string()});
  const std::vector<CertificateRow> rows = read_certificates(table);
  ASSERT_EQ(rows.size(), plain.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Counts &counts = rows[i].certificate.counts, &of_plain = plain[i].certificate.counts;
    EXPECT_EQ(counts.gaps, of_plain.gaps);
    EXPECT_EQ(counts.top, copies_safe_from(counts.gaps, 2));
    EXPECT_EQ(of_plain.top, copies_safe_from(counts.gaps, 0));
    EXPECT_EQ(rows[i].alpha, level_of_each(0.001, 2));  // all of m = 0, 1, 2 at once
  }
  // The same from the stored gaps.
  const fs::path again = jobs::recertify({.table = path("run").string(),
                                          .out = path("again.tsv").string(),
                                          .alpha = 0.001,
                                          .malicious = 2});
  for (CertificateRow row : read_certificates(again)) {
    const auto same = std::ranges::find(rows, row.index, &CertificateRow::index);
    row.seconds = same->seconds;
    EXPECT_EQ(format_row(row), format_row(*same));
  }
  // At the alpha of the table, which all of its claims about an image share.
  const fs::path own = jobs::recertify(
      {.table = path("two.tsv").string(), .out = path("own.tsv").string(), .malicious = 0});
  EXPECT_DOUBLE_EQ(*read_identity(own).alpha, 0.001);
  EXPECT_NE(refusal([&] {
              certify("run", {{"certify.malicious", "3"}});
            }).find("4 groups withstand at most 2"),
            std::string::npos);
}

TEST_F(GroupRunsTest, ShardsAndResumedTablesHaveTheSameRows) {
  train("run");
  const std::vector<std::string> whole = rows(certify("run"));
  std::vector<std::string> parts;
  for (int i = 1; i <= 2; ++i) {
    const std::string part = path(fmt::format("part{}.tsv", i)).string();
    certify("run", {}, {.out = part, .shard = fmt::format("{}/2", i)});
    parts.push_back(part);
  }
  jobs::merge(parts, path("merged.tsv"));
  EXPECT_EQ(rows(path("merged.tsv")), whole);
  const fs::path table = path("run") / "certificates.tsv";
  std::string text = read_file(table);
  text.resize(text.rfind('\n', text.size() - 2) - 5);  // in the middle of the last row but one
  write_file(table, text);
  certify("run", {}, {.resume = true});
  EXPECT_EQ(rows(table), whole);
}

TEST_F(GroupRunsTest, VerifyDrawsTheVotesOfAllGroupsAnew) {
  train("run");
  const fs::path table = certify("run");
  EXPECT_GT(jobs::verify({.table = table.string(), .images = 5}, {}, context_).p_value, 1e-6);
  // Rows whose gaps are wider than they were, with the same votes for the class.
  std::vector<CertificateRow> wider = read_certificates(table);
  for (CertificateRow& row : wider) {
    Gaps& gaps = row.certificate.counts.gaps;
    const int64_t widest = row.certificate.counts.selected > 0 ? 3 : 4;
    const int64_t safe = copies_safe_from(gaps, 0), below = gaps.back();
    gaps.assign(gaps.size(), 0);
    gaps[widest] = safe;
    gaps.back() = below;
  }
  write_like(table, path("wider.tsv"), wider);
  const auto found = jobs::verify(
      {.table = path("wider.tsv").string(), .images = 5, .model = path("run").string()}, {},
      context_);
  EXPECT_LT(found.p_value, 1e-6);
}

TEST_F(GroupRunsTest, AModelThatTheRunDidNotTrainIsRefused) {
  train("run");
  experiment_.seed = 5;
  train("other");
  const fs::path model = group_folder(path("run"), 2) / "model.safetensors";
  const std::string own = read_file(model);
  write_file(model, read_file(group_folder(path("other"), 2) / "model.safetensors"));
  EXPECT_NE(refusal([&] { certify("run"); }).find("is not the model that this run trained"),
            std::string::npos);
  fs::remove_all(group_folder(path("run"), 2));
  fs::copy(group_folder(path("other"), 2), group_folder(path("run"), 2),
           fs::copy_options::recursive);
  EXPECT_NE(refusal([&] { certify("run"); }).find("not those that it trained"), std::string::npos);
}

TEST_F(GroupRunsTest, OtherCommandsKnowRunsOfGroupsOrRefuseThem) {
  train("run");
  certify("run");
  const std::vector<jobs::Answer> answers =
      jobs::predict({.path = path("run").string(), .images = {"0", "1"}, .n = 100}, {}, context_);
  EXPECT_EQ(answers.size(), 2U);
  const RunRecord run = jobs::load_run(path("run"));
  const auto threats = list_threats(run);
  ASSERT_TRUE(threats.has_value());
  EXPECT_EQ(threats->malicious, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_NE(refusal([&] {
              jobs::certify({.path = path("run").string(),
                             .out = path("x.tsv").string(),
                             .with = {group_folder(path("run"), 1).string()}},
                            {}, context_);
            }).find("is a run of several groups"),
            std::string::npos);
  const auto against_a_class = [&] {
    certify("run", {}, {.out = path("y.tsv").string(), .against = {{"0"}}});
  };
  EXPECT_NE(refusal(against_a_class).find("not certified against given classes"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path("y.tsv")));  // no vote was drawn
  const ComparedRuns compared = jobs::compare({path("run").string(), path("run").string()});
  ASSERT_TRUE(compared.threats.has_value());
  EXPECT_EQ(compared.threats->malicious, threats->malicious);
  const jobs::DryRun votes = jobs::dry_run_certify({path("run").string()}, {}, context_);
  EXPECT_NE(votes.device.find("majority-of-4"), std::string::npos) << votes.device;
  const jobs::DryRun training = jobs::dry_run_train(experiment_, context_);
  EXPECT_EQ(training.count, 3 * 4 * 2 * 2);  // rounds, groups, clients, steps
}

TEST_F(GroupRunsTest, AReportHasTheTrainingOfAllGroups) {
  train("runs/a");
  std::vector<double> losses;
  for (int64_t g = 1; g <= 4; ++g) {
    losses.push_back(read_rounds(group_folder(path("runs/a"), g) / "rounds.tsv")[1].loss);
  }
  const RunRecord run = jobs::load_run(path("runs/a"));
  EXPECT_FALSE(run.certified());
  EXPECT_EQ(run.groups, 4);
  ASSERT_EQ(run.rounds.size(), 3U);
  EXPECT_EQ(run.rounds[1].round, 2);
  EXPECT_DOUBLE_EQ(run.rounds[1].loss, (losses[0] + losses[1] + losses[2] + losses[3]) / 4);
  ASSERT_EQ(run.clients.size(), 16U);
  for (size_t k = 0; k < 16; ++k) EXPECT_EQ(run.clients[k].client, static_cast<int64_t>(k));
  EXPECT_EQ(jobs::find_runs(path("runs")), std::vector<std::string>{path("runs/a").string()});
  jobs::report({path("runs/a").string()}, path("a.html"), context_);
  const std::string page = read_file(path("a.html"));
  EXPECT_NE(page.find("its curves are means over the groups"), std::string::npos);
  EXPECT_NE(page.find("Not certified yet"), std::string::npos);
}

TEST_F(GroupRunsTest, AnUnfinishedRunNamesTheCommandThatContinuesAllGroups) {
  train("run");
  fs::remove(path("run") / "DONE");
  fs::remove(group_folder(path("run"), 3) / "DONE");
  const std::string advice = fmt::format("`fedsmooth train --resume {}`", path("run").string());
  for (const std::string command : {"certify", "predict", "attack"}) {
    const std::string why = refusal([&] {
      const std::string run = path("run").string();
      if (command == "certify") jobs::certify({run}, {}, context_);
      if (command == "predict") jobs::predict({.path = run, .images = {"0"}}, {}, context_);
      if (command == "attack") jobs::attack({.path = run, .epsilons = {0.5}}, {}, context_);
    });
    EXPECT_NE(why.find(advice), std::string::npos) << command << ": " << why;
  }
  EXPECT_NE(not_certified(jobs::load_run(path("run"))).find(advice), std::string::npos);
  fs::create_directories(path("begun"));
  fs::copy(path("run") / "experiment.toml", path("begun") / "experiment.toml");
  EXPECT_NE(refusal([&] { jobs::load_run(path("begun")); }).find("`fedsmooth train --resume"),
            std::string::npos);
}

// As many images as it takes for such a short training to be right on some of them.
TEST_F(GroupRunsTest, AttacksGoAgainstTheMeanOfTheGroups) {
  train("run");
  const Overrides images = {{"certify.every", "40"}, {"certify.limit", "0"}, {"certify.n", "200"}};
  certify("run", images);
  Overrides options = images;
  options.emplace_back("smoothing.m", "4");
  options.emplace_back("attack.steps", "2");
  const jobs::AttackOutcome attacked = jobs::attack(
      {.path = path("run").string(), .epsilons = {0.5, 3}, .n = 100}, options, context_);
  EXPECT_EQ(attacked.summary.certified_images, attacked.summary.images);
  double longest = 0;
  for (const AttackRow& row : read_attacks(attacked.table)) {
    longest = std::max(longest, row.perturbation);
  }
  EXPECT_GT(longest, 0.4);
  const auto sidecar = nlohmann::json::parse(read_file(sidecar_path(attacked.table)));
  EXPECT_EQ(sidecar["identity"]["groups"], 4);
}

TEST_F(GroupRunsTest, OneNetworkIsNotCertifiedAgainstMaliciousClients) {
  experiment_.groups.count = 1;
  train("run");
  EXPECT_NE(refusal([&] {
              certify("run", {{"certify.malicious", "1"}});
            }).find("one network"),
            std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
