#include "fedsmooth/jobs/training/noisy_answers.h"

#include <algorithm>
#include <set>

#include "fedsmooth/engine/samplers.h"

namespace fedsmooth::jobs {
namespace {

struct NoisyAnswer {
  int64_t label, answer;  // the answer is -1 if no copy has finite logits
};

// Returns the answers for at most `most` images at equal distances, each the class with the most
// votes of `n` copies.
std::vector<NoisyAnswer> noisy_answers(const Model& model, double sigma, const Dataset& data,
                                       const NoisyVotes& drawn, int64_t most, int64_t n) {
  const std::unique_ptr<Sampler> sampler =
      make_sampler(choose_classifier(drawn.device, model, kFloatNoise), kFloatNoise, drawn.threads);
  const int64_t count = std::min(data.size(), most);
  std::vector<VoteRequest> requests;
  std::vector<NoisyAnswer> answers;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t image = i * data.size() / count;
    answers.push_back({data.label(image), -1});
    requests.push_back(
        {data.image(image),
         sigma,
         n,
         {make_key(drawn.seed, Purpose::kEvaluation), static_cast<uint32_t>(image)}});
  }
  const std::vector<Votes> votes = sampler->count_all(requests);
  for (int64_t i = 0; i < count; ++i) answers[i].answer = majority(votes[i]);
  return answers;
}

}  // namespace

double noisy_accuracy(const Model& model, const Dataset& data, const NoisyVotes& votes) {
  const auto answers = noisy_answers(model, model.sigma, data, votes, /*most=*/200, /*n=*/128);
  const auto right = std::ranges::count_if(
      answers, [](const NoisyAnswer& one) { return one.answer == one.label; });
  return static_cast<double>(right) / static_cast<double>(answers.size());
}

std::optional<int64_t> only_answer(const Model& model, double sigma, const Dataset& data,
                                   const NoisyVotes& votes) {
  std::set<int64_t> labels, given;
  for (const auto& [label, answer] :
       noisy_answers(model, sigma, data, votes, /*most=*/100, /*n=*/32)) {
    labels.insert(label);
    given.insert(answer);
  }
  if (labels.size() < 2 || given.size() != 1 || *given.begin() < 0) return std::nullopt;
  return *given.begin();
}

}  // namespace fedsmooth::jobs
