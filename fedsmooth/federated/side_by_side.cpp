#include "fedsmooth/federated/side_by_side.h"

#include <utility>

#include "fedsmooth/base/memory.h"

namespace fedsmooth {

std::vector<std::exception_ptr> train_side_by_side(const std::vector<Training>& runs,
                                                   Executor& executor) {
  std::vector<std::exception_ptr> thrown(runs.size());
  // Those of the runs `among` for which `step` is true; what it throws is kept.
  const auto keep_if = [&](const std::vector<size_t>& among, const auto& step) {
    std::vector<size_t> kept;
    for (const size_t i : among) {
      try {
        if (step(i)) kept.push_back(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
    return kept;
  };
  std::vector<size_t> going(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) going[i] = i;
  int64_t room = available_memory();
  going = keep_if(going, [&](size_t i) {
    room = check_executor(runs[i], executor, room);
    return rounds_left(runs[i]) > 0;
  });
  while (!going.empty()) {
    std::vector<Round> rounds;
    going = keep_if(going, [&](size_t i) {
      rounds.push_back(next_round(runs[i]));
      return true;
    });
    if (going.empty()) break;
    std::vector<RoundResult> results = executor.run(rounds);
    auto result = results.begin();
    going = keep_if(going, [&](size_t i) {
      return aggregate(runs[i], std::move(*result++)) && rounds_left(runs[i]) > 0;
    });
  }
  return thrown;
}

}  // namespace fedsmooth
