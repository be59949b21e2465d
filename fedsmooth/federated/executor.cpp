#include "fedsmooth/federated/executor.h"

#include <utility>

namespace fedsmooth {

void RoundResult::add(const Round& round, size_t i, Update update) {
  if (round.gather == Gather::kSum) {
    if (!sum.add(update.weights, round.cohort.share(i))) return;
  } else if (usable(update.weights)) {
    each.push_back({round.cohort.clients[i], round.cohort.share(i), std::move(update.weights),
                    update.telemetry.mean_loss(), std::move(update.velocity)});
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

Update train_client(const Round& round, size_t i, Passes& passes) {
  const int64_t k = round.cohort.clients[i];
  const std::vector<int64_t>& images = round.cohort.images[i];
  Telemetry compared;
  compare_gradients(round.task, passes, round.global, k, images, round.t, compared);
  Update update = local_train(round.task, passes, round.global, k, images, round.t,
                              round.velocity == nullptr ? Weights{} : *round.velocity);
  update.telemetry.add(compared);
  return update;
}

RoundResult run_round(Executor& executor, const Round& round) {
  return std::move(executor.run({round}).front());
}

std::vector<RoundResult> SerialExecutor::run(const std::vector<Round>& rounds) {
  std::vector<RoundResult> results;
  for (const Round& round : rounds) {
    RoundResult& result = results.emplace_back();
    const std::unique_ptr<Passes> passes = make_(round.task.network);
    for (size_t i = 0; i < round.cohort.clients.size(); ++i) {
      result.add(round, i, train_client(round, i, *passes));
    }
  }
  return results;
}

}  // namespace fedsmooth
