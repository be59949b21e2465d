#include "fedsmooth/distributed/distributed_executor.h"

#include <algorithm>
#include <map>

#include "fedsmooth/distributed/remote_executor.h"
#include "fedsmooth/distributed/round_plan.h"
#include "fedsmooth/distributed/round_words.h"

namespace fedsmooth {
namespace {

// Executors are not asked about rounds in which this rank has no clients.
std::vector<RoundResult> run_those_with_clients(Executor& executor, std::vector<Round> rounds) {
  std::vector<RoundResult> results(rounds.size());
  std::vector<size_t> places;
  std::vector<Round> asked;
  for (size_t r = 0; r < rounds.size(); ++r) {
    if (rounds[r].cohort.clients.empty()) continue;
    places.push_back(r);
    asked.push_back(std::move(rounds[r]));
  }
  if (asked.empty()) return results;
  std::vector<RoundResult> found = executor.run(asked);
  for (size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(found[i]);
  return results;
}

// The words of all ranks' shares, at rank 0.
std::vector<long long> run_share(Ranks& ranks, Executor& local,
                                 const std::vector<PlannedRound>& plan, std::vector<Round> rounds) {
  const std::vector<RoundResult> results = run_those_with_clients(local, std::move(rounds));
  std::vector<long long> words;
  for (size_t r = 0; r < plan.size(); ++r) {
    append_words(results[r], count_values(plan[r].global), words);
  }
  ranks.add_up(words);
  return words;
}

// Both lists of clients rise.
Cohort keep(const Cohort& cohort, const std::vector<int64_t>& clients) {
  Cohort kept;
  kept.clients = clients;
  kept.total = cohort.total;
  auto place = cohort.clients.begin();
  for (const int64_t client : clients) {
    place = std::lower_bound(place, cohort.clients.end(), client);
    kept.images.push_back(cohort.images[place - cohort.clients.begin()]);
  }
  return kept;
}

}  // namespace

std::vector<RoundResult> DistributedExecutor::run(const std::vector<Round>& rounds) {
  if (ranks_.size() == 1) return local_.run(rounds);
  try {
    const std::vector<PlannedRound> plan = plan_rounds(rounds, ranks_.size());
    std::string bytes = format_plan(plan);
    ranks_.broadcast(bytes);
    std::vector<Round> own;
    for (size_t r = 0; r < rounds.size(); ++r) {
      const Round& round = rounds[r];
      own.push_back(
          {round.task, round.global, keep(round.cohort, plan[r].clients[0]), round.t, round.run});
    }
    const std::vector<long long> words = run_share(ranks_, local_, plan, std::move(own));
    traffic_.down += static_cast<int64_t>(bytes.size());
    traffic_.up += static_cast<int64_t>(words.size() * sizeof(long long));
    std::vector<RoundResult> results;
    const long long* next = words.data();
    for (const Round& round : rounds) {
      const int64_t weights = count_values(round.global);
      results.push_back(take_words(next, weights));
      next += word_count(weights);
    }
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
                const std::function<SharedRun(int64_t run)>& open) {
  std::map<int64_t, SharedRun> runs;
  while (true) {
    std::string bytes;
    ranks.broadcast(bytes);
    const std::vector<PlannedRound> plan = parse_plan(bytes, network, ranks.size());
    if (plan.empty()) return;
    std::vector<Round> own;
    for (const PlannedRound& round : plan) {
      if (!runs.contains(round.run)) runs.emplace(round.run, open(round.run));
      const SharedRun& run = runs.at(round.run);
      own.push_back({task_in_round(run.task, run.options, round.t), round.global,
                     gather_cohort(run.partition, round.clients[ranks.rank()], round.total),
                     round.t, round.run});
    }
    run_share(ranks, local, plan, std::move(own));
  }
}

}  // namespace fedsmooth
