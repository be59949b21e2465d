#include "fedsmooth/distributed/hand_out.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace fedsmooth {
namespace {

TEST(HandOutTest, OneRankDoesAllInOrder) {
  Ranks ranks;
  std::string taken;
  hand_out(
      ranks, 2, 5, [](int64_t i) { return std::to_string(i); },
      [&](int64_t i, const std::string& result) {
        EXPECT_EQ(result, std::to_string(i));
        taken += result;
      });
  EXPECT_EQ(taken, "234");
}

TEST(HandOutTest, KeepsWhatWasDoneBeforeAStop) {
  Ranks ranks;
  std::string taken;
  const Work work = [](int64_t i) -> std::string {
    if (i == 2) throw Interrupted{};
    return std::to_string(i);
  };
  EXPECT_THROW(
      hand_out(ranks, 0, 5, work, [&](int64_t, const std::string& result) { taken += result; }),
      Interrupted);
  EXPECT_EQ(taken, "01");
}

TEST(HandOutTest, ThrowsWhatTakingThrows) {
  Ranks ranks;
  int64_t worked = 0;
  const auto work = [&](int64_t) { return std::to_string(++worked); };
  const auto take = [](int64_t, const std::string&) { throw std::runtime_error("full"); };
  EXPECT_THROW(hand_out(ranks, 0, 5, work, take), std::runtime_error);
  EXPECT_EQ(worked, 1);
}

}  // namespace
}  // namespace fedsmooth
