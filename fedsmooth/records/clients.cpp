#include "fedsmooth/records/clients.h"

#include <algorithm>
#include <numeric>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/records/tsv.h"

namespace fedsmooth {
namespace {

constexpr int64_t kMaxCount = 1'000'000'000;

std::string header(size_t classes) {
  std::string line = "client\timages";
  for (size_t c = 0; c < classes; ++c) line += fmt::format("\tlabel_{}", c);
  return line + "\n";
}

}  // namespace

int64_t ClientRow::images() const {
  return std::accumulate(labels.begin(), labels.end(), int64_t{0});
}

std::string format_clients(const std::vector<ClientRow>& rows) {
  const size_t classes = rows.empty() ? 0 : rows.front().labels.size();
  std::string text = header(classes);
  for (const ClientRow& row : rows) {
    check(row.labels.size() == classes, "format_clients: rows of different lengths");
    text += fmt::format("{}\t{}\t{}\n", row.client, row.images(), fmt::join(row.labels, "\t"));
  }
  return text;
}

std::vector<ClientRow> parse_clients(std::string_view text, const std::string& name) {
  const std::string_view first = text.substr(0, text.find('\n'));
  const auto tabs = static_cast<size_t>(std::count(first.begin(), first.end(), '\t'));
  const size_t classes = tabs < 1 ? 0 : tabs - 1;
  std::vector<ClientRow> rows;
  parse_tsv(text, header(classes), name, [&](const TsvRow& row) {
    ClientRow client{row.whole(0, 0, kMaxCount)};
    for (size_t c = 0; c < classes; ++c) client.labels.push_back(row.whole(2 + c, 0, kMaxCount));
    if (row.whole(1, 1, kMaxCount) != client.images()) {
      throw Error("{}: the labels do not add up to the images", row.where);
    }
    rows.push_back(std::move(client));
  });
  return rows;
}

std::vector<ClientRow> read_clients(const std::filesystem::path& path) {
  return parse_clients(read_file(path), path.string());
}

}  // namespace fedsmooth
