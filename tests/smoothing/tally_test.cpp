#include "fedsmooth/smoothing/tally.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

TEST(TallyTest, ListsTheClassesThatGotVotes) {
  const Tally tally = tally_of({0, 7, 0, 2, 7});
  EXPECT_EQ(tally, (Tally{{1, 7}, {3, 2}, {4, 7}}));
  EXPECT_TRUE(tally_of({0, 0}).empty());
}

TEST(TallyTest, CountsLikeTheVotesThatItStandsFor) {
  const Tally tally = {{1, 7}, {3, 2}, {4, 7}};
  EXPECT_EQ(total_votes(tally), 16);
  EXPECT_EQ(votes_for(tally, 3), 2);
  EXPECT_EQ(votes_for(tally, 0), 0);
  EXPECT_EQ(votes_for(tally, 5), 0);
  EXPECT_EQ(most_for_another(tally, 1), 7);
  EXPECT_EQ(most_for_another({{1, 7}, {3, 2}}, 1), 2);
  EXPECT_EQ(most_for_another({{1, 7}}, 1), 0);
  EXPECT_EQ(most_voted(tally), 1);  // the first on ties
  EXPECT_EQ(most_voted({}), 0);
}

}  // namespace
}  // namespace fedsmooth
