#include "fedsmooth/distributed/remote_executor.h"

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/distributed/round_plan.h"
#include "fedsmooth/distributed/round_words.h"

namespace fedsmooth {

int64_t count_values(const Weights& weights) {
  int64_t count = 0;
  for (const Array& w : weights) count += w.count();
  return count;
}

std::optional<std::string> RemoteExecutor::unsupported(const Round& round) const {
  if (round.task.continuous) {
    return "train.mode=\"centralized\": nodes send no momentum; use federated";
  }
  if (round.gather == Gather::kSum) return {};
  return "aggregate.kind: nodes send sums, not each client's weights; use mean";
}

std::vector<RoundResult> RemoteExecutor::run(const std::vector<Round>& rounds) {
  std::vector<RoundResult> results;
  const std::vector<std::vector<long long>> answers = ask_(rounds);
  check(answers.size() == rounds.size(), "nodes: words of {} rounds, expected {}", answers.size(),
        rounds.size());
  for (size_t r = 0; r < rounds.size(); ++r) {
    const Round& round = rounds[r];
    const std::vector<long long>& words = answers[r];
    const int64_t sums = SumSizes(round.global, parameters(round.task.network)).words();
    if (words.empty()) {
      RoundResult& given_up = results.emplace_back();
      given_up.is_given_up = true;
      given_up.dropped = std::ssize(round.cohort.clients);
      continue;
    }
    if (words.size() != word_count(sums)) {
      throw Error("round {}: {} words, expected {}", round.t + 1, words.size(), word_count(sums));
    }
    results.push_back(read_result(words.data(), sums));
  }
  return results;
}

std::vector<long long> run_node_task(Executor& executor, const LocalTask& task,
                                     const TrainOptions& options, const Partition& partition,
                                     const NodeTask& asked) {
  const Cohort cohort = gather_cohort(partition, asked.clients, asked.total);
  const Round round{task_in_round(task, options, partition.clients(), asked.t), asked.global,
                    cohort, asked.t};
  if (const auto why = executor.unsupported(round)) throw Error("{}", *why);
  std::vector<long long> words;
  append_words(run_round(executor, round), SumSizes(asked.global, parameters(task.network)).words(),
               words);
  return words;
}

}  // namespace fedsmooth
