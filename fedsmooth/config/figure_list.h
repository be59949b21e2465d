// figures.toml, which describes the report of a sweep's folder: the page's title, readable labels
// for parts of the runs' names, and figures. A figure has panels side by side, whose curves are
// chosen by the names of runs.
//
//     title = "The paper's experiments"
//     [labels]
//     one-point = "One-Point"
//     [[figure]]
//     name = "figure-1"
//     caption = "Certified accuracy with sigma = 0.25."
//     panels = [{title = "centralized", runs = "centralized-sigma0.25-*"}]
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

inline constexpr const char* kFiguresFile = "figures.toml";

struct PanelChoice {
  std::string title;
  std::string runs;  // pattern with one *, see match_star()
};

struct FigureChoice {
  std::string name;   // file name: letters, digits, ".", "_" and "-"
  std::string title;  // above the figure on the page; empty: the name
  std::string caption;
  std::vector<PanelChoice> panels;  // 1 to 6
};

struct FigureList {
  std::string title;                          // of the page; may be empty
  std::map<std::string, std::string> labels;  // of parts of names, see readable_name()
  std::vector<FigureChoice> figures;
};

/// Reads TOML text. Throws an Error with `file` and the line for an unknown or missing key, a wrong
/// type, two figures of one name or more than 6 panels.
FigureList parse_figures(std::string_view text, const std::string& file);

/// Returns the part of `name` that the * of `runs` matches; none if `name` does not match.
std::optional<std::string> match_star(std::string_view runs, std::string_view name);

}  // namespace fedsmooth
