#include "fedsmooth/config/figure_list.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/experiment_toml.h"

namespace fedsmooth {
namespace {

constexpr size_t kMaxPanels = 6;  // more in one row would be too small to read
constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

// Its Errors begin with file and line.
class FiguresReader {
 public:
  explicit FiguresReader(const std::string& file) : file_(file) {}

  FigureList read(const toml::table& table) const {
    if (table.empty()) refuse(table, "figure: is missing");
    check_keys(table, {}, {"title", "labels", "figure"});
    FigureList list;
    if (table.contains("title")) list.title = text(table, "title");
    if (table.contains("labels")) list.labels = read_labels(*table.get("labels"));
    if (table.contains("figure")) list.figures = read_figures(table);
    return list;
  }

 private:
  std::vector<FigureChoice> read_figures(const toml::table& table) const {
    std::vector<FigureChoice> figures;
    for (const toml::table* one : tables(table, "figure")) {
      figures.push_back(read_figure(*one));
      const auto same = [&](const FigureChoice& f) { return f.name == figures.back().name; };
      if (std::count_if(figures.begin(), figures.end(), same) > 1) {
        refuse(*one->get("name"), fmt::format("name: {:?} is there twice", figures.back().name));
      }
    }
    return figures;
  }

  std::map<std::string, std::string> read_labels(const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) refuse(node, "labels: must be a table of names and labels");
    std::map<std::string, std::string> labels;
    for (const auto& [name, label] : *table) {
      const std::string key(name.str());
      labels[key] = text(*table, key);
      if (labels[key].empty()) refuse(label, fmt::format("{}: must not be empty", key));
    }
    return labels;
  }

  [[noreturn]] void refuse(const toml::node& node, const std::string& what) const {
    throw Error("{}:{}: {}", file_, node.source().begin.line, what);
  }

  // Throws an Error unless the table has all of `keys`, any of `more`, and no others.
  void check_keys(const toml::table& table, const std::vector<std::string>& keys,
                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> known = keys;
    known.insert(known.end(), more.begin(), more.end());
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
        refuse(node, fmt::format("unknown key {:?}; use {}", key.str(), fmt::join(known, ", ")));
      }
    }
    for (const std::string& key : keys) {
      if (!table.contains(key)) refuse(table, fmt::format("{}: is missing", key));
    }
  }

  std::string text(const toml::table& table, const std::string& key) const {
    const toml::node& node = *table.get(key);
    if (!node.is_string()) refuse(node, fmt::format("{}: must be a string", key));
    return to_string(node);
  }

  std::vector<const toml::table*> tables(const toml::table& table, const std::string& key) const {
    const toml::node& node = *table.get(key);
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty())
      refuse(node, fmt::format("{}: must be a list of tables", key));
    std::vector<const toml::table*> found;
    for (const toml::node& one : *list) {
      if (!one.is_table()) refuse(one, fmt::format("{}: must be a list of tables", key));
      found.push_back(one.as_table());
    }
    return found;
  }

  PanelChoice read_panel(const toml::table& table) const {
    check_keys(table, {"title", "runs"});
    PanelChoice panel{text(table, "title"), text(table, "runs")};
    if (std::count(panel.runs.begin(), panel.runs.end(), '*') != 1) {
      refuse(*table.get("runs"), fmt::format("runs: {:?} must have one *", panel.runs));
    }
    return panel;
  }

  FigureChoice read_figure(const toml::table& table) const {
    check_keys(table, {"name", "caption", "panels"}, {"title"});
    FigureChoice figure{.name = text(table, "name"), .caption = text(table, "caption")};
    if (table.contains("title")) figure.title = text(table, "title");
    if (figure.name.empty() ||
        figure.name.find_first_not_of(kNameCharacters) != std::string::npos) {
      refuse(*table.get("name"),
             fmt::format("name: {:?} must be of letters, digits, \".\", \"_\" and \"-\"",
                         figure.name));
    }
    for (const toml::table* one : tables(table, "panels"))
      figure.panels.push_back(read_panel(*one));
    if (figure.panels.size() > kMaxPanels) {
      refuse(*table.get("panels"),
             fmt::format("panels: {}, at most {} fit", figure.panels.size(), kMaxPanels));
    }
    return figure;
  }

  const std::string& file_;
};

}  // namespace

FigureList parse_figures(std::string_view text, const std::string& file) {
  return FiguresReader(file).read(parse_toml(text, file));
}

std::optional<std::string> match_star(std::string_view runs, std::string_view name) {
  const size_t star = runs.find('*');
  const std::string_view head = runs.substr(0, star), tail = runs.substr(star + 1);
  // Head and tail must not overlap in the name.
  if (name.size() < head.size() + tail.size()) return std::nullopt;
  if (!name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return std::string(name.substr(head.size(), name.size() - head.size() - tail.size()));
}

}  // namespace fedsmooth
