#include "fedsmooth/records/clients.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

TEST(ClientsTest, RowsReadBack) {
  const std::string text = format_clients({{0, {3, 0, 2}}, {17, {0, 1, 0}}});
  EXPECT_EQ(text,
            "client\timages\tlabel_0\tlabel_1\tlabel_2\n"
            "0\t5\t3\t0\t2\n17\t1\t0\t1\t0\n");
  const auto rows = parse_clients(text, "c.tsv");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].labels, (std::vector<int64_t>{3, 0, 2}));
  EXPECT_EQ(rows[1].client, 17);
  EXPECT_EQ(rows[1].images(), 1);
}

TEST(ClientsTest, NoClientsAndACutOffLineAreNoError) {
  EXPECT_TRUE(parse_clients(format_clients({}), "c.tsv").empty());
  EXPECT_TRUE(parse_clients("", "c.tsv").empty());
  EXPECT_TRUE(parse_clients("client\timages\tlabel_0", "c.tsv").empty());
  EXPECT_EQ(parse_clients("client\timages\tlabel_0\n0\t1\t1\n1\t1", "c.tsv").size(), 1);
}

TEST(ClientsTest, RefusesTablesThatCannotBe) {
  const std::string header = "client\timages\tlabel_0\tlabel_1\n";
  EXPECT_EQ(parse_clients(header + "0\t3\t1\t2\n", "c").size(), 1);
  const std::vector<std::string> impossible = {
      header + "0\t4\t1\t2\n",   // does not add up
      header + "0\t0\t0\t0\n",   // holds nothing
      header + "-1\t3\t1\t2\n",  // no such client
      header + "0\t3\t4\t-1\n",  // a negative count
      header + "0\t3\t3\n",      "client\timages\tlabel_1\tlabel_0\n0\t3\t1\t2\n",
      "client\tlabel_0\n0\t3\n", "round\tloss\n1\t2\n"};
  for (const std::string& text : impossible) EXPECT_THROW(parse_clients(text, "c"), Error) << text;
}

}  // namespace
}  // namespace fedsmooth
