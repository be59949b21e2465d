#include "fedsmooth/distributed/distributed_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include "fedsmooth/base/check.h"
#include "fedsmooth/distributed/remote_executor.h"
#include "fedsmooth/distributed/round_plan.h"
#include "fedsmooth/distributed/round_words.h"

namespace fedsmooth {
namespace {

// Returns the number of words in a round's sums; 0 if the round keeps each client's weights.
int64_t words_in_sum(const Round& round) {
  if (round.gather != Gather::kSum) return 0;
  return SumSizes(round.global, parameters(round.task.network)).words();
}

// Executors are not asked about rounds in which this rank has no clients.
std::vector<RoundResult> run_those_with_clients(Executor& executor,
                                                const std::vector<Round>& rounds) {
  std::vector<RoundResult> results(rounds.size());
  std::vector<size_t> indices;
  std::vector<Round> asked;
  for (size_t r = 0; r < rounds.size(); ++r) {
    if (rounds[r].cohort.clients.empty()) continue;
    indices.push_back(r);
    asked.push_back(rounds[r]);
  }
  if (asked.empty()) return results;
  std::vector<RoundResult> found = executor.run(asked);
  for (size_t i = 0; i < indices.size(); ++i) results[indices[i]] = std::move(found[i]);
  return results;
}

// The words of all ranks' shares, at rank 0.
std::vector<long long> add_up_sums(Ranks& ranks, const std::vector<Round>& rounds,
                                   const std::vector<RoundResult>& results) {
  std::vector<long long> words;
  for (size_t r = 0; r < rounds.size(); ++r) {
    append_words(results[r], words_in_sum(rounds[r]), words);
  }
  ranks.add_up(words);
  return words;
}

// Tells rank 0 which clients this one dropped, a message each: the round's index, client, tensor.
void send_named(Ranks& ranks, const std::vector<RoundResult>& results) {
  for (size_t r = 0; r < results.size(); ++r) {
    for (const DroppedClient& one : results[r].named) {
      ranks.send(0, fmt::format("{} {} {}", r, one.client, one.why));
    }
  }
}

// Completes `results`, which count the clients that any rank dropped and name those of this one.
void receive_named(Ranks& ranks, std::vector<RoundResult>& results) {
  int64_t missing = 0;
  for (const RoundResult& one : results) missing += one.dropped - std::ssize(one.named);
  for (; missing > 0; --missing) {
    std::istringstream text(ranks.receive(Ranks::kAnyRank));
    size_t r = 0;
    DroppedClient one;
    text >> r >> one.client >> std::ws;
    std::getline(text, one.why);
    results.at(r).named.push_back(one);
  }
}

// One client at a time, so that no cohort is in memory twice. A dropped one is an empty message.
void send_each(Ranks& ranks, const Round& round, const RoundResult& result) {
  for (const int64_t client : round.cohort.clients) {
    std::string bytes;
    for (const ClientWeights& one : result.each) {
      if (one.client != client) continue;
      bytes.append(reinterpret_cast<const char*>(&one.loss), sizeof(one.loss));
      for (const Weights& weights : {one.weights, one.velocity}) {
        for (const Array& w : weights) {
          bytes.append(reinterpret_cast<const char*>(w.floats()), w.byte_count());
        }
      }
    }
    ranks.send(0, bytes);
  }
}

Weights take_weights(const char*& bytes, const Weights& like) {
  Weights weights;
  for (const Array& shape : like) {
    Array& w = weights.emplace_back(shape.sizes());
    std::memcpy(w.floats(), bytes, w.byte_count());
    bytes += w.byte_count();
  }
  return weights;
}

// What send_each() sent of this share of the round's cohort, which is that of `rank`. Returns its
// bytes.
int64_t receive_each(Ranks& ranks, int rank, const Round& round, const Cohort& cohort,
                     RoundResult& result) {
  const bool with_velocity = round.task.continuous;
  const size_t expected =
      sizeof(double) + count_values(round.global) * sizeof(float) * (with_velocity ? 2 : 1);
  int64_t received = 0;
  for (size_t i = 0; i < cohort.clients.size(); ++i) {
    const std::string bytes = ranks.receive(rank);
    if (bytes.empty()) continue;
    received += static_cast<int64_t>(bytes.size());
    check(bytes.size() == expected, "rank {}: other weights", rank);
    ClientWeights& one = result.each.emplace_back();
    one.client = cohort.clients[i];
    one.share = cohort.share(i);
    std::memcpy(&one.loss, bytes.data(), sizeof(one.loss));
    const char* next = bytes.data() + sizeof(one.loss);
    one.weights = take_weights(next, round.global);
    if (with_velocity) one.velocity = take_weights(next, round.global);
  }
  return received;
}

// Both lists of clients rise.
Cohort keep(const Cohort& cohort, const std::vector<int64_t>& clients) {
  Cohort kept;
  kept.clients = clients;
  kept.total = cohort.total;
  auto found = cohort.clients.begin();
  for (const int64_t client : clients) {
    found = std::lower_bound(found, cohort.clients.end(), client);
    kept.images.push_back(cohort.images[found - cohort.clients.begin()]);
  }
  return kept;
}

}  // namespace

std::vector<RoundResult> DistributedExecutor::run(const std::vector<Round>& rounds) {
  if (ranks_.size() == 1) return local_.run(rounds);
  try {
    const std::vector<RoundAssignment> plan = plan_rounds(rounds, ranks_.size());
    std::string bytes = format_plan(plan);
    ranks_.broadcast(bytes);
    std::vector<Round> own = rounds;
    for (size_t r = 0; r < rounds.size(); ++r) {
      own[r].cohort = keep(rounds[r].cohort, plan[r].clients[0]);
    }
    std::vector<RoundResult> local = run_those_with_clients(local_, own);
    const std::vector<long long> words = add_up_sums(ranks_, own, local);
    traffic_.down += static_cast<int64_t>(bytes.size());
    traffic_.up += static_cast<int64_t>(words.size() * sizeof(long long));
    std::vector<RoundResult> results;
    const long long* next = words.data();
    for (size_t r = 0; r < rounds.size(); ++r) {
      const int64_t sums = words_in_sum(rounds[r]);
      RoundResult& result = results.emplace_back(read_result(next, sums));
      next += word_count(sums);
      result.each = std::move(local[r].each);
      result.named = std::move(local[r].named);
      if (rounds[r].gather == Gather::kSum) continue;
      int64_t most = 0;
      for (int rank = 1; rank < ranks_.size(); ++rank) {
        const Cohort theirs = keep(rounds[r].cohort, plan[r].clients[rank]);
        most = std::max(most, receive_each(ranks_, rank, rounds[r], theirs, result));
      }
      traffic_.up += most;
    }
    receive_named(ranks_, results);
    return results;
  } catch (...) {
    ranks_.lose_step();
    throw;
  }
}

DistributedExecutor::~DistributedExecutor() {
  if (ranks_.size() == 1 || !ranks_.in_step()) return;
  std::string no_rounds = format_plan({});
  ranks_.broadcast(no_rounds);
}

void run_shares(Ranks& ranks, Executor& local, const Network& network,
                const std::function<RankRun(int64_t run)>& open) {
  std::map<int64_t, RankRun> runs;
  while (true) {
    std::string bytes;
    ranks.broadcast(bytes);
    const std::vector<RoundAssignment> plan = parse_plan(bytes, network, ranks.size());
    if (plan.empty()) return;
    std::vector<Round> own;
    for (const RoundAssignment& round : plan) {
      if (!runs.contains(round.run)) runs.emplace(round.run, open(round.run));
      const RankRun& run = runs.at(round.run);
      LocalTask task = task_in_round(run.task, run.options, run.partition.clients(), round.t);
      task.teacher = round.teacher;
      task.image_weights = round.image_weights;
      own.push_back({std::move(task), round.global,
                     gather_cohort(run.partition, round.clients[ranks.rank()], round.total),
                     round.t, round.run, gathered_for(run.options),
                     round.velocity.empty() ? nullptr : &round.velocity});
    }
    const std::vector<RoundResult> results = run_those_with_clients(local, own);
    add_up_sums(ranks, own, results);
    for (size_t r = 0; r < own.size(); ++r) {
      if (own[r].gather == Gather::kEach) send_each(ranks, own[r], results[r]);
    }
    send_named(ranks, results);
  }
}

}  // namespace fedsmooth
