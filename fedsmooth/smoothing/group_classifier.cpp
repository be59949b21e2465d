#include "fedsmooth/smoothing/group_classifier.h"

#include <algorithm>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

void check_group_members(const std::vector<BaseClassifier>& members) {
  const auto count = std::ssize(members);
  if (count < 2 || count > kMaxGroups) {
    throw Error("groups: {} networks; there must be from 2 to {}", count, kMaxGroups);
  }
  const BaseClassifier& first = members.front();
  for (const BaseClassifier& f : members) {
    if (f.groups > 0) throw Error("groups: {} is several groups itself", f.description);
    if (f.classes != first.classes) {
      throw Error("groups: one network has {} classes, another {}", first.classes, f.classes);
    }
    if (f.batch != first.batch) {
      throw Error("groups: {} evaluates {} images at a time, {} evaluates {}", first.description,
                  first.batch, f.description, f.batch);
    }
  }
}

// [batch, groups * classes]: a row has the logits of one member after another.
Array logits_of_all(const std::vector<Classifier>& members, const Array& images, int64_t classes) {
  const int64_t batch = images.size(0), groups = std::ssize(members);
  Array all({batch, groups * classes});
  for (int64_t g = 0; g < groups; ++g) {
    const Array logits = members[g](images);
    check(logits.sizes() == Sizes{batch, classes}, "groups: logits [{}], expected [{}, {}]",
          fmt::join(logits.sizes(), ", "), batch, classes);
    for (int64_t i = 0; i < batch; ++i) {
      const float* from = logits.floats() + i * classes;
      std::copy(from, from + classes, all.floats() + (i * groups + g) * classes);
    }
  }
  return all;
}

}  // namespace

std::string describe_groups(const std::vector<std::string>& descriptions) {
  std::vector<std::string> distinct = descriptions;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return fmt::format("{}/majority-of-{}", fmt::join(distinct, "+"), descriptions.size());
}

BaseClassifier group_classifier(const std::vector<BaseClassifier>& members) {
  check_group_members(members);
  BaseClassifier majority;
  majority.classes = members.front().classes;
  majority.batch = members.front().batch;
  majority.groups = std::ssize(members);
  std::vector<std::string> descriptions;
  std::vector<std::function<Classifier()>> makers;
  for (const BaseClassifier& f : members) {
    descriptions.push_back(f.description);
    makers.push_back(f.make);
  }
  majority.description = describe_groups(descriptions);
  majority.make = [makers, classes = majority.classes]() -> Classifier {
    std::vector<Classifier> evaluators;
    for (const auto& make : makers) evaluators.push_back(make());
    return [evaluators, classes](const Array& images) {
      return logits_of_all(evaluators, images, classes);
    };
  };
  return majority;
}

}  // namespace fedsmooth
