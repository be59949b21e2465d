#include "fedsmooth/federated/executor.h"

#include <fmt/format.h>

#include <utility>

namespace fedsmooth {

void RoundResult::add(const Round& round, size_t i, Update update) {
  const int64_t client = round.cohort.clients[i];
  const double share = round.cohort.share(i);
  const std::vector<Parameter> known = parameters(round.task.network);
  if (auto why = out_of_bounds(update.weights, known, round.bounds())) {
    return drop(client, std::move(*why));
  }
  telemetry.add(update.telemetry);
  if (round.gather == Gather::kSum) return sum.add(update.weights, known, share);
  each.push_back({client, share, std::move(update.weights), update.telemetry.mean_loss(),
                  std::move(update.velocity)});
}

void RoundResult::add(RoundResult other) {
  sum.add(other.sum);
  for (ClientWeights& one : other.each) each.push_back(std::move(one));
  telemetry.add(other.telemetry);
  dropped += other.dropped;
  for (DroppedClient& one : other.named) named.push_back(std::move(one));
}

void RoundResult::drop(int64_t client, std::string why) {
  ++dropped;
  named.push_back({client, std::move(why)});
}

void RoundResult::drop_beyond(ValueBounds bounds, const std::vector<Parameter>& known) {
  std::erase_if(each, [&](const ClientWeights& one) {
    const auto why = out_of_bounds(one.weights, known, bounds);
    if (why) drop(one.client, *why);
    return why.has_value();
  });
}

std::optional<std::string> Executor::unsupported(const Round& round) const {
  if (round.gather == Gather::kSum) return {};
  return "aggregate.kind: this executor adds clients up and cannot keep each one's weights";
}

std::optional<std::string> unsupported_on_cpu(const Round& round) {
  const Objective& objective = objective_of(round.task.method);
  if (objective.score != nullptr) return {};
  return fmt::format("train.method={:?}: has no score for the CPU", objective.name);
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
