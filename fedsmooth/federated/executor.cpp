#include "fedsmooth/federated/executor.h"

#include <utility>

namespace fedsmooth {

void RoundResult::add(const Round& round, size_t i, Update update) {
  if (round.gather == Gather::kSum) {
    if (!sum.add(update.weights, round.cohort.share(i))) return;
  } else if (usable(update.weights)) {
    each.push_back({round.cohort.clients[i], round.cohort.share(i), std::move(update.weights),
                    update.telemetry.mean_loss()});
  } else {
    sum.drop();
    return;
  }
  telemetry.add(update.telemetry);
}

void RoundResult::add(RoundResult other) {
  sum.add(other.sum);
  for (ClientWeights& one : other.each) each.push_back(std::move(one));
  telemetry.add(other.telemetry);
}

std::optional<std::string> Executor::unsupported(const Round& round) const {
  if (round.gather == Gather::kSum) return {};
  return "aggregate.kind: this executor adds clients up and cannot keep each one's weights";
}

RoundResult run_round(Executor& executor, const Round& round) {
  return std::move(executor.run({round}).front());
}

std::vector<RoundResult> SerialExecutor::run(const std::vector<Round>& rounds) {
  std::vector<RoundResult> results;
  for (const Round& round : rounds) {
    RoundResult& result = results.emplace_back();
    const Cohort& cohort = round.cohort;
    const std::unique_ptr<Passes> passes = make_(round.task.network);
    for (size_t i = 0; i < cohort.clients.size(); ++i) {
      result.add(round, i,
                 local_train(round.task, *passes, round.global, cohort.clients[i], cohort.images[i],
                             round.t));
    }
  }
  return results;
}

}  // namespace fedsmooth
