// fedsmooth partition EXPERIMENT_OR_RUN: what the clients hold, as a table and a figure.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/jobs/training.h"
#include "fedsmooth/jobs/training/clients.h"
#include "fedsmooth/report/figures/client_figure.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownRows = 20;
constexpr size_t kNameWidth = 12;
constexpr size_t kCountWidth = 5;

struct Table {
  std::vector<std::string> names;  // of the classes, cut to fit

  explicit Table(const std::vector<std::string>& class_names) {
    for (const std::string& name : class_names) names.push_back(shorten(name, kNameWidth));
  }

  std::string line(const std::string& head, const std::vector<std::string>& cells) const {
    std::string text = fmt::format("{:>9}{:>8}", head, cells[0]);
    for (size_t c = 0; c < names.size(); ++c) {
      text += fmt::format("{:>{}}", cells[c + 1], 2 + std::max(names[c].size(), kCountWidth));
    }
    return text + "\n";
  }

  std::string header() const {
    std::vector<std::string> cells = {"images"};
    cells.insert(cells.end(), names.begin(), names.end());
    return line("client", cells);
  }

  std::string client(const ClientRow& row) const {
    std::vector<std::string> cells = {std::to_string(row.images())};
    for (const int64_t count : row.labels) cells.push_back(std::to_string(count));
    return line(std::to_string(row.client), cells);
  }

  // `summary` of each column over all rows.
  template <typename Summary>
  std::string summary_line(const std::string& head, const std::vector<ClientRow>& rows,
                           Summary summary) const {
    std::vector<std::string> cells;
    for (size_t column = 0; column <= names.size(); ++column) {
      std::vector<int64_t> counts;
      for (const ClientRow& row : rows) {
        counts.push_back(column == 0 ? row.images() : row.labels[column - 1]);
      }
      cells.push_back(fmt::format("{}", summary(counts)));
    }
    return line(head, cells);
  }
};

std::string mean(const std::vector<int64_t>& counts) {
  double sum = 0;
  for (const int64_t count : counts) sum += static_cast<double>(count);
  return fmt::format("{:.1f}", sum / static_cast<double>(counts.size()));
}

std::string render(const jobs::Clients& clients) {
  const std::vector<ClientRow>& rows = clients.rows;
  const Table table(clients.class_names);
  std::string text = table.header();
  const size_t shown = std::min(rows.size(), kShownRows);
  for (size_t i = 0; i < shown; ++i) text += table.client(rows[i * rows.size() / shown]);
  text += table.summary_line("mean", rows, mean);
  const auto least = [](const auto& counts) { return std::ranges::min(counts); };
  const auto most = [](const auto& counts) { return std::ranges::max(counts); };
  text += table.summary_line("least", rows, least) + table.summary_line("most", rows, most);
  if (std::ssize(rows) < clients.count) {
    text += fmt::format("over {} of {} clients, at equal distances\n", rows.size(), clients.count);
  } else if (shown < rows.size()) {
    text +=
        fmt::format("{} of {} clients shown, the summaries are over all\n", shown, clients.count);
  }
  return text;
}

nlohmann::json to_json(const jobs::Clients& clients) {
  nlohmann::json listed = nlohmann::json::array();
  for (const ClientRow& row : clients.rows) {
    listed.push_back({{"client", row.client}, {"images", row.images()}, {"labels", row.labels}});
  }
  return {{"clients", clients.count}, {"classes", clients.class_names}, {"rows", listed}};
}

int run_partition(const std::string& path, const fs::path& out, const Overrides& overrides,
                  const CommandContext& common) {
  Experiment experiment = read_experiment(jobs::experiment_file(path));
  apply_overrides(experiment, overrides);
  const jobs::Clients clients = jobs::list_clients(experiment);
  if (out.extension() == ".tsv") {
    write_file(out, format_clients(clients.rows));
  } else if (!out.empty()) {
    draw_clients(clients.rows, clients.class_names, out);
  }
  print_result(common, to_json(clients),
               render(clients) + (out.empty() ? "" : out.string() + "\n"));
  return 0;
}

}  // namespace

void add_partition(CLI::App& app, CommandContext& common) {
  struct Arguments {
    std::string experiment, out;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "partition", "show which classes the clients hold",
            "  fedsmooth partition experiments/quickstart/smoothadv.toml\n"
            "  fedsmooth partition e.toml --partition.gamma=0.5 --out clients.svg\n"
            "  fedsmooth partition runs/quickstart/smoothadv");
  c.argument("experiment_or_run", a->experiment, "experiment file, or a run folder");
  c.option("out", a->out, "figure to write: .svg, .pdf or .png; .tsv: the table");
  c.on_run([a, &common](const Overrides& overrides) {
    return run_partition(a->experiment, a->out, overrides, common);
  });
}

}  // namespace fedsmooth::cli
