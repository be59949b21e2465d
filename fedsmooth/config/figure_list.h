// The figures of a sweep's report, figures.toml: panels side by side, their curves chosen by the
// names of runs.
//
//     [[figure]]
//     name = "figure-1"
//     caption = "Certified accuracy with sigma = 0.25."
//     panels = [{title = "centralized", runs = "centralized-sigma0.25-*"}]
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

inline constexpr const char* kFiguresFile = "figures.toml";

struct PanelChoice {
  std::string title;
  std::string runs;  // a name with one *
};

struct FigureChoice {
  std::string name;  // fit for a file
  std::string caption;
  std::vector<PanelChoice> panels;  // 1 to 6
};

/// Reads TOML text; `file` stands in error messages, with the line.
std::vector<FigureChoice> parse_figures(std::string_view text, const std::string& file);

/// What the * of `runs` stands for in `name`; none if the name is another.
std::optional<std::string> match_star(std::string_view runs, std::string_view name);

}  // namespace fedsmooth
