#include "fedsmooth/report/page/accuracy_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/page/frame.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr int kMostRadii = 8;

struct Cell {
  std::string text, small;  // empty: not known
};

struct Column {
  std::string title;
  bool has_best = true;  // whether the largest value is the best
  std::vector<Cell> cells;
};

std::vector<AccuracyRow> certified_rows(const std::vector<AccuracyRow>& rows) {
  std::vector<AccuracyRow> found = rows;
  std::erase_if(found, [](const AccuracyRow& row) { return !row.run->certified(); });
  return found;
}

Cell accuracy_cell(const RunRecord& run, double radius) {
  if (!can_certify(run, radius)) return {};
  const Proportion share = accuracy_at(run.rows, radius).accuracy;
  return {percent(share.value), fmt::format("{}–{}", percent(share.low), percent(share.high))};
}

std::vector<Column> columns_of(const std::vector<AccuracyRow>& rows) {
  const Norm norm = rows.front().run->norm;
  double largest = 0;
  for (const AccuracyRow& row : rows) largest = std::max(largest, largest_radius(row.run->rows));
  std::vector<Column> columns;
  for (const double radius : standard_radii(largest, norm, kMostRadii)) {
    Column column{format_step(norm, radius)};
    for (const AccuracyRow& row : rows) column.cells.push_back(accuracy_cell(*row.run, radius));
    columns.push_back(std::move(column));
  }
  Column mean{"average radius"}, abstained{"abstained %", false};
  for (const AccuracyRow& row : rows) {
    const Summary summary = summarize(row.run->rows, norm);
    mean.cells.push_back({format_mean(norm, summary.average_certified_radius), ""});
    abstained.cells.push_back({summary.abstained ? percent(summary.abstained->value) : "", ""});
  }
  columns.push_back(std::move(mean));
  columns.push_back(std::move(abstained));
  return columns;
}

/// The largest value as printed, of which there may be several; none among fewer than two or zeros.
std::optional<std::string> best_of(const Column& column) {
  if (!column.has_best || column.cells.size() < 2) return std::nullopt;
  std::optional<std::string> best;
  double most = 0;
  for (const Cell& cell : column.cells) {
    if (cell.text.empty() || std::stod(cell.text) <= most) continue;
    most = std::stod(cell.text);
    best = cell.text;
  }
  return best;
}

std::string cell_html(const Cell& cell, bool best) {
  return fmt::format("<td{}>{}{}</td>", best ? " class=\"best\"" : "", cell.text,
                     cell.small.empty() ? "" : fmt::format("<small>{}</small>", cell.small));
}

std::string name_html(const AccuracyRow& row) {
  const std::string name = escape_html(row.name);
  return row.id.empty() ? name : fmt::format("<a href=\"#{}\">{}</a>", row.id, name);
}

}  // namespace

std::string accuracy_table(const std::vector<AccuracyRow>& all) {
  const std::vector<AccuracyRow> rows = certified_rows(all);
  if (rows.empty()) return {};
  const std::vector<Column> columns = columns_of(rows);
  std::string head, body;
  std::vector<std::optional<std::string>> best;
  for (const Column& column : columns) {
    head += fmt::format("<th scope=\"col\">{}</th>", column.title);
    best.push_back(best_of(column));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    body += fmt::format("<tr><th scope=\"row\">{}</th>", name_html(rows[i]));
    for (size_t c = 0; c < columns.size(); ++c) {
      const Cell& cell = columns[c].cells[i];
      body += cell_html(cell, best[c] && cell.text == *best[c]);
    }
    body += "</tr>\n";
  }
  return scrolling(fmt::format(
      "<table class=\"sortable accuracy\">\n<thead><tr><th scope=\"col\">certified % at {} "
      "radius</th>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>",
      norm_symbol(rows.front().run->norm), head, body));
}

std::string radius_table(const RunRecord& run) {
  std::vector<CurvePoint> attacked;
  if (!run.attacks.empty()) attacked = attacked_accuracy(run.attacks);
  std::string rows;
  for (const AtRadius& at : summarize(run.rows, run.norm).table) {
    const auto left = attacked_at(attacked, at.radius);
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}–{}</td><td>{}</td>{}</tr>\n",
        format_step(run.norm, at.radius), percent(at.accuracy.value), percent(at.accuracy.low),
        percent(at.accuracy.high),
        at.high_probability ? percent_at_least(*at.high_probability) : "",
        run.attacks.empty() ? "" : fmt::format("<td>{}</td>", left ? percent(*left) : ""));
  }
  return scrolling(fmt::format(
      "<table>\n<thead><tr><th scope=\"col\">{} radius</th><th scope=\"col\">certified "
      "%</th><th scope=\"col\">95% interval</th><th scope=\"col\">at least, "
      "99.9%</th>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>",
      norm_symbol(run.norm), run.attacks.empty() ? "" : "<th scope=\"col\">attacked %</th>", rows));
}

}  // namespace fedsmooth
