#include "fedsmooth/jobs/report.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/config/figure_list.h"
#include "fedsmooth/jobs/pages/gallery_images.h"
#include "fedsmooth/jobs/pages/kept_runs.h"
#include "fedsmooth/report/comparison.h"
#include "fedsmooth/report/figures/panels.h"
#include "fedsmooth/report/page/html.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

struct LoadedRuns {
  std::vector<std::string> folders;
  std::vector<RunRecord> runs;
};

// What cannot be read is reported and left out: the others are worth a report.
LoadedRuns load_readable(const fs::path& folder, const Context& context,
                         const TableOptions& options) {
  LoadedRuns loaded;
  std::optional<UnpackedRuns> unpacked;
  if (const fs::path archive = archive_in(folder); !archive.empty()) unpacked.emplace(archive);
  for (const std::string& run : find_runs(unpacked ? unpacked->folder() : folder)) {
    try {
      loaded.runs.push_back(load_run(run, "", options));
      loaded.folders.push_back(run);
    } catch (const Error& error) {
      context.warn(fmt::format("{}; left out of the report", error.what()));
    }
  }
  return loaded;
}

// A run's name begins with its folder's and continues if images are still missing, which the label
// must not hide.
Panel make_panel(const PanelChoice& choice, const LoadedRuns& sweep) {
  Panel panel{choice.title};
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const std::string name = fs::path(sweep.folders[i]).filename().string();
    const auto star = match_star(choice.runs, name);
    if (!star) continue;
    const RunRecord& run = sweep.runs[i];
    panel.curves.push_back(curve_of(run, *star + run.name.substr(name.size())));
  }
  return panel;
}

NamedFigure make_figure(const FigureChoice& choice, const LoadedRuns& sweep) {
  std::vector<Panel> panels;
  for (const PanelChoice& panel : choice.panels) panels.push_back(make_panel(panel, sweep));
  NamedFigure named{choice.name, choice.caption};
  if (has_curves(panels)) named.figure = panel_figure(panels);
  return named;
}

std::vector<NamedFigure> make_figures(const fs::path& file, const LoadedRuns& sweep) {
  std::vector<NamedFigure> figures;
  if (!fs::exists(file)) return figures;
  for (const FigureChoice& choice : parse_figures(read_file(file), file.string())) {
    figures.push_back(make_figure(choice, sweep));
  }
  return figures;
}

}  // namespace

std::vector<RunRecord> report_folder(const fs::path& folder, const fs::path& page,
                                     const Context& context, const TableOptions& options) {
  LoadedRuns sweep = load_readable(folder, context, options);
  load_gallery_images(sweep.runs, options.data);
  const std::vector<NamedFigure> figures = make_figures(folder / kFiguresFile, sweep);
  for (const NamedFigure& named : figures) {
    if (!named.figure) continue;
    for (const char* ending : {".svg", ".png"}) {
      write_figure(*named.figure, page.parent_path() / "figures" / (named.name + ending));
    }
  }
  write_file(page, render_report(sweep.runs, figures));
  return std::move(sweep.runs);
}

std::vector<RunRecord> report(const std::vector<std::string>& names, const fs::path& out,
                              const Context& context, const TableOptions& options) {
  if (out.extension() != ".html" && out.extension() != ".md") {
    throw Error("--out={}: must end in .html or .md; `plot` draws figures", out.string());
  }
  check_table_options(options);  // else every run of a folder would be left out with a warning
  const bool is_folder = names.size() == 1 && holds_runs(names[0]);
  const bool markdown = out.extension() == ".md";
  if (is_folder && !markdown) return report_folder(names[0], out, context, options);
  std::vector<RunRecord> runs =
      is_folder ? load_readable(names[0], context, options).runs : load_runs(names, options);
  if (!markdown) load_gallery_images(runs, options.data);
  write_file(out, markdown ? render_markdown(runs) : render_report(runs));
  return runs;
}

}  // namespace fedsmooth::jobs
