#include "fedsmooth/jobs/report.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/config/figure_list.h"
#include "fedsmooth/jobs/pages/gallery_images.h"
#include "fedsmooth/jobs/pages/kept_runs.h"
#include "fedsmooth/report/comparison.h"
#include "fedsmooth/report/figures/panels.h"
#include "fedsmooth/report/names.h"
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

// A run's name begins with its folder's and continues if images are still missing, which a label
// must not hide.
std::string suffix_of(const RunRecord& run, const std::string& folder) {
  return run.name.substr(folder.size());
}

std::string folder_name(const std::string& folder) { return fs::path(folder).filename().string(); }

void add_panel(const PanelChoice& choice, const LoadedRuns& sweep, const FigureList& list,
               ReportFigure& figure) {
  Panel panel{choice.title};
  std::vector<size_t> runs;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const std::string name = folder_name(sweep.folders[i]);
    const auto star = match_star(choice.runs, name);
    if (!star) continue;
    const RunRecord& run = sweep.runs[i];
    panel.curves.push_back(curve_of(run, readable_name(*star, list.labels) + suffix_of(run, name)));
    runs.push_back(i);
  }
  figure.panels.push_back(std::move(panel));
  figure.runs.push_back(std::move(runs));
}

std::vector<ReportFigure> make_figures(const FigureList& list, const LoadedRuns& sweep) {
  std::vector<ReportFigure> figures;
  for (const FigureChoice& choice : list.figures) {
    ReportFigure figure{choice.name, choice.title, choice.caption};
    for (const PanelChoice& panel : choice.panels) add_panel(panel, sweep, list, figure);
    figures.push_back(std::move(figure));
  }
  return figures;
}

FigureList read_figure_list(const fs::path& file) {
  return fs::exists(file) ? parse_figures(read_file(file), file.string()) : FigureList{};
}

void set_labels(LoadedRuns& sweep, const FigureList& list) {
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    RunRecord& run = sweep.runs[i];
    const std::string name = folder_name(sweep.folders[i]);
    run.label = readable_name(name, list.labels) + suffix_of(run, name);
  }
}

void hold_against(std::vector<RunRecord>& runs, const AgainstOptions& options) {
  if (!options.asked()) return;
  for (RunRecord& run : runs) {
    if (run.certified()) {
      run.against = std::make_shared<const AgainstResult>(certify_against(run, options));
    }
  }
}

}  // namespace

std::vector<RunRecord> report_folder(const fs::path& folder, const fs::path& page,
                                     const Context& context, const TableOptions& options,
                                     const AgainstOptions& against) {
  LoadedRuns sweep = load_readable(folder, context, options);
  load_gallery_images(sweep.runs, options.data);
  hold_against(sweep.runs, against);
  const FigureList list = read_figure_list(folder / kFiguresFile);
  set_labels(sweep, list);
  const ReportText text{list.title, make_figures(list, sweep)};
  for (const ReportFigure& figure : text.figures) {
    if (!has_curves(figure.panels)) continue;
    const Figure drawn = panel_figure(figure.panels);
    for (const char* ending : {".svg", ".png"}) {
      write_figure(drawn, page.parent_path() / "figures" / (figure.name + ending));
    }
  }
  write_file(page, render_report(sweep.runs, text));
  return std::move(sweep.runs);
}

std::vector<RunRecord> report(const std::vector<std::string>& names, const fs::path& out,
                              const Context& context, const TableOptions& options,
                              const AgainstOptions& against) {
  if (out.extension() != ".html" && out.extension() != ".md") {
    throw Error("--out={}: must end in .html or .md; `plot` draws figures", out.string());
  }
  check_table_options(options);  // else every run of a folder would be left out with a warning
  const bool is_folder = names.size() == 1 && holds_runs(names[0]);
  const bool markdown = out.extension() == ".md";
  if (is_folder && !markdown) return report_folder(names[0], out, context, options, against);
  std::vector<RunRecord> runs =
      is_folder ? load_readable(names[0], context, options).runs : load_runs(names, options);
  hold_against(runs, against);
  if (!markdown) load_gallery_images(runs, options.data);
  write_file(out, markdown ? render_markdown(runs) : render_report(runs));
  return runs;
}

}  // namespace fedsmooth::jobs
