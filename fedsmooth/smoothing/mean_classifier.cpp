#include "fedsmooth/smoothing/mean_classifier.h"

#include <algorithm>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

void check_members(const std::vector<BaseClassifier>& members) {
  if (members.empty()) throw Error("mean of classifiers: the list is empty");
  const BaseClassifier& first = members.front();
  for (const BaseClassifier& f : members) {
    if (f.groups > 0) throw Error("mean of classifiers: {} is several groups", f.description);
    if (f.classes != first.classes) {
      throw Error("mean of classifiers: one has {} classes, another {}", first.classes, f.classes);
    }
    if (f.batch != first.batch) {
      throw Error("mean of classifiers: {} evaluates {} images at a time, {} evaluates {}",
                  first.description, first.batch, f.description, f.batch);
    }
  }
}

Array mean_of_logits(const std::vector<Classifier>& members, const Array& images,
                     const Sizes& expected) {
  Array sum;
  for (const Classifier& member : members) {
    const Array logits = member(images);
    check(logits.sizes() == expected, "mean of classifiers: logits [{}], expected [{}]",
          fmt::join(logits.sizes(), ", "), fmt::join(expected, ", "));
    if (!sum.defined()) {
      sum = logits.clone();  // the member may reuse its own memory
      continue;
    }
    for (int64_t i = 0; i < sum.count(); ++i) sum.floats()[i] += logits.floats()[i];
  }
  const auto count = static_cast<float>(members.size());
  for (int64_t i = 0; i < sum.count(); ++i) sum.floats()[i] /= count;
  return sum;
}

}  // namespace

std::string describe_mean(std::vector<std::string> descriptions) {
  const size_t count = descriptions.size();
  std::sort(descriptions.begin(), descriptions.end());
  descriptions.erase(std::unique(descriptions.begin(), descriptions.end()), descriptions.end());
  return fmt::format("{}/mean-of-{}", fmt::join(descriptions, "+"), count);
}

BaseClassifier mean_classifier(const std::vector<BaseClassifier>& members) {
  check_members(members);
  const Sizes expected = {members.front().batch, members.front().classes};
  BaseClassifier mean;
  mean.classes = members.front().classes;
  mean.batch = members.front().batch;
  std::vector<std::string> descriptions;
  std::vector<std::function<Classifier()>> makers;
  for (const BaseClassifier& f : members) {
    descriptions.push_back(f.description);
    makers.push_back(f.make);
  }
  mean.description = describe_mean(descriptions);
  mean.make = [makers, expected]() -> Classifier {
    std::vector<Classifier> evaluators;
    for (const auto& make : makers) evaluators.push_back(make());
    return [evaluators, expected](const Array& images) {
      return mean_of_logits(evaluators, images, expected);
    };
  };
  return mean;
}

}  // namespace fedsmooth
