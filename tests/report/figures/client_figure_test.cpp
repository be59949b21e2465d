#include "fedsmooth/report/figures/client_figure.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "tests/report/figures/drawing.h"

namespace fedsmooth {
namespace {

class ClientFigureTest : public DrawingTest {
 protected:
  std::string svg(const std::vector<ClientRow>& clients, const std::vector<std::string>& names) {
    draw_clients(clients, names, folder_ / "a.svg");
    return read_file(folder_ / "a.svg");
  }
};

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

std::vector<ClientRow> even_clients(int64_t count, size_t classes) {
  std::vector<ClientRow> clients;
  for (int64_t i = 0; i < count; ++i) clients.push_back({i, std::vector<int64_t>(classes, 7)});
  return clients;
}

TEST_F(ClientFigureTest, EndingChoosesTheFormat) {
  const std::vector<std::pair<std::string, std::string>> formats = {
      {"a.svg", "<?xml"}, {"a.pdf", "%PDF-"}, {"a.png", "\x89PNG\r\n"}};
  for (const auto& [name, magic] : formats) {
    draw_clients(even_clients(3, 2), {}, folder_ / name);
    EXPECT_TRUE(read_file(folder_ / name).starts_with(magic)) << name;
  }
}

TEST_F(ClientFigureTest, EveryClientHasABoxPerClass) {
  // gnuplot fills polygons; the legend has one per class too.
  EXPECT_EQ(count_of(svg(even_clients(4, 3), {}), "<polygon"), 4 * 3 + 3);
}

TEST_F(ClientFigureTest, FiftyOfManyClientsAreShownFromAllOverTheirRange) {
  const std::string picture = svg(even_clients(1000, 2), {});
  EXPECT_EQ(count_of(picture, "<polygon"), 50 * 2 + 2);
  EXPECT_EQ(count_of(picture, "<text>101</text>"), 1);  // 20 (5 + 0.09), the sixth
  EXPECT_EQ(count_of(picture, "<text>916</text>"), 1);  // 20 (45 + 0.81)
}

TEST_F(ClientFigureTest, ShownClientsHaveAllMajorClasses) {
  std::vector<ClientRow> clients = even_clients(500, 10);
  for (ClientRow& client : clients) {
    client.labels.assign(10, 0);
    client.labels[static_cast<size_t>(client.client) % 10] = 1;
  }
  const std::string picture = svg(clients, {});
  std::map<std::string, int> boxes;  // by colour; the legend has one of each
  for (size_t at = 0; (at = picture.find("<polygon", at)) != std::string::npos; ++at) {
    boxes[picture.substr(at, picture.find("points", at) - at)] += 1;
  }
  EXPECT_EQ(boxes.size(), 10);
  for (const auto& [colour, count] : boxes) EXPECT_GT(count, 1) << colour;
}

TEST_F(ClientFigureTest, ClassesWithoutNamesGoByNumber) {
  const std::string picture = svg(even_clients(2, 3), {"cat", "dog"});
  EXPECT_EQ(count_of(picture, "<text>cat</text>"), 1);
  EXPECT_EQ(count_of(picture, "<text>dog</text>"), 1);
  EXPECT_EQ(count_of(picture, "<text>2</text>"), 1);
}

TEST_F(ClientFigureTest, HostileNamesAreOnlyNames) {
  const std::string picture = svg(even_clients(2, 2), {"`touch PWNED`", "<b>', system \"x\"\n#"});
  EXPECT_EQ(count_of(picture, "`touch PWNED`</text>"), 1);
  EXPECT_EQ(count_of(picture, "<b>"), 0);
  EXPECT_FALSE(std::filesystem::exists("PWNED"));
}

TEST_F(ClientFigureTest, DrawsOneClientOfOneClassAndManyClasses) {
  EXPECT_EQ(count_of(svg(even_clients(1, 1), {}), "<polygon"), 2);
  EXPECT_EQ(count_of(svg(even_clients(3, 100), {}), "<polygon"), 300);  // no room for a legend
}

TEST_F(ClientFigureTest, RefusesNoClientsAndUnequalClasses) {
  EXPECT_THROW(svg({}, {}), Error);
  EXPECT_THROW(svg({{0, {1, 2}}, {1, {3}}}, {}), Error);
  EXPECT_THROW(svg({{0, {}}}, {}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace fedsmooth
