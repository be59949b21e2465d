#include "fedsmooth/report/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/page/accuracy_chart.h"
#include "fedsmooth/report/page/accuracy_table.h"
#include "fedsmooth/report/page/frame.h"
#include "fedsmooth/report/page/gallery_section.h"
#include "fedsmooth/report/page/histogram_chart.h"
#include "fedsmooth/report/page/history_chart.h"
#include "fedsmooth/report/page/notes.h"
#include "fedsmooth/report/page/run_section.h"
#include "fedsmooth/report/verdict.h"

namespace fedsmooth {
namespace {

constexpr size_t kMostCurves = 12;   // that one chart can show
constexpr size_t kMostUnfolded = 6;  // sections about a run each

bool any(const std::vector<RunRecord>& runs, bool (*has)(const RunRecord&)) {
  return std::any_of(runs.begin(), runs.end(), has);
}

bool is_certified(const RunRecord& run) { return run.certified(); }
bool is_published(const RunRecord& run) { return run.certified() && run.rows.front().published; }
bool is_attacked(const RunRecord& run) { return !run.attacks.empty(); }
bool has_rounds(const RunRecord& run) { return !run.rounds.empty(); }
bool is_of_groups(const RunRecord& run) { return run.groups > 0; }
bool was_attacked_in_training(const RunRecord& run) { return has_attack(run.rounds); }

/// "2026-11-16", or the first and the last day; empty if no table states its date.
std::string days_of(const std::vector<RunRecord>& runs) {
  std::set<std::string> days;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.provenance) {
      if (key == "date" && value.size() >= 10) days.insert(value.substr(0, 10));
    }
  }
  if (days.empty()) return {};
  return days.size() == 1 ? *days.begin() : *days.begin() + " to " + *days.rbegin();
}

/// A report in the making: sections are added in the order in which they stand.
class Report {
 public:
  Report(const std::vector<RunRecord>& runs, const ReportText& text) : runs_(runs), text_(text) {
    for (const RunRecord& run : runs)
      run_ids_.push_back(contents_.reserve("run " + run.shown_name()));
  }

  std::string render() {
    const bool together = text_.figures.empty() && runs_.size() <= kMostCurves;
    add_figures();
    add_accuracy(together);
    if (together) add_distribution();
    add_noise();
    if (together) add_training();
    add_runs();
    return page({title(), lead(), contents_.render(), body_});
  }

 private:
  std::string title() const { return text_.title.empty() ? describe_runs(runs_) : text_.title; }

  std::string lead() const {
    std::string lead = fmt::format("<p class=\"verdict\">{}</p>\n", escape_html(verdict(runs_)));
    const std::string days = days_of(runs_);
    const std::string terms = verdict_terms(runs_) + (days.empty() ? "" : " " + days + ".");
    if (!terms.empty()) lead += fmt::format("<p class=\"terms\">{}</p>\n", escape_html(terms));
    return lead + warned();
  }

  /// Leads to the runs with warnings.
  std::string warned() const {
    std::string links;
    size_t count = 0;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (list_warnings(runs_[i]).empty()) continue;
      count += 1;
      links += fmt::format("{}<a href=\"#{}\">{}</a>", links.empty() ? "" : ", ", run_ids_[i],
                           escape_html(runs_[i].shown_name()));
    }
    if (count == 0) return {};
    if (count > kMostUnfolded) links = fmt::format("{} of {} runs", count, runs_.size());
    return fmt::format("<p class=\"note\">Warnings: {}.</p>\n", links);
  }

  void add(std::string_view name, const std::string& html) {
    body_ += section(contents_.add(name), name, html);
  }

  void add_figures() {
    if (text_.figures.empty()) return;
    const std::string id = contents_.add("Figures");  // before its parts
    std::string html;
    for (const ReportFigure& figure : text_.figures) html += figure_html(figure);
    body_ += section(id, "Figures", html);
  }

  std::string figure_html(const ReportFigure& figure) {
    const std::string name = figure.title.empty() ? figure.name : figure.title;
    if (!has_curves(figure.panels)) {
      return fmt::format("<p class=\"note\">{} is left out: none of its runs is certified.</p>\n",
                         escape_html(name));
    }
    return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n{}{}</figure>\n",
                       heading(contents_.add(name, 2), name), escape_html(figure.caption),
                       render_chart(panel_chart(figure.name, figure.panels)),
                       folded("Numbers", accuracy_table(rows_of(figure))));
  }

  std::vector<AccuracyRow> rows_of(const ReportFigure& figure) const {
    std::vector<AccuracyRow> rows;
    for (size_t p = 0; p < figure.runs.size(); ++p) {
      const Panel& panel = figure.panels[p];
      for (size_t i = 0; i < figure.runs[p].size(); ++i) {
        const size_t run = figure.runs[p][i];
        const std::string& label = panel.curves[i].label;
        rows.push_back({figure.panels.size() == 1 ? label : label + ", " + panel.title, &runs_[run],
                        run_ids_[run]});
      }
    }
    return rows;
  }

  void add_accuracy(bool drawn) {
    if (!any(runs_, is_certified)) return;
    std::vector<Curve> curves;
    std::vector<AccuracyRow> rows;
    for (size_t i = 0; i < runs_.size(); ++i) {
      curves.push_back(curve_of(runs_[i], runs_[i].shown_name()));
      rows.push_back({runs_[i].shown_name(), &runs_[i], run_ids_[i]});
    }
    const Norm norm = runs_[0].norm;
    const std::string notes =
        fmt::format(kWhatIsCertified, norm_symbol(norm), norm == Norm::kL2 ? "" : kOtherNorm) +
        std::string(kAccuracyNote) + std::string(any(runs_, is_attacked) ? kAttackedNote : "") +
        std::string(any(runs_, is_published) ? kPublishedNote : "");
    add(drawn ? "Certified accuracy" : "All runs",
        fmt::format("{}{}{}", drawn ? render_chart(accuracy_chart(curves)) : "",
                    accuracy_table(rows),
                    folded("What is certified, and how to read this", notes)));
  }

  void add_distribution() {
    if (!any(runs_, is_certified)) return;
    add("What becomes of all images",
        render_chart(distribution_chart(runs_)) + folded("How to read this", kDistributionNote));
  }

  void add_noise() {
    const std::string noise = render_noise(runs_);
    if (!noise.empty()) add("What σ means", noise);
  }

  void add_training() {
    if (!any(runs_, has_rounds)) return;
    const std::string id = contents_.add("Training");
    std::string html;
    if (const std::string note = note_on_rounds(runs_); !note.empty()) {
      html += fmt::format("<p>{}</p>\n", escape_html(note));
    }
    if (any(runs_, is_of_groups)) html += kGroupsNote;
    html += render_chart(training_chart(runs_)) + folded("How to read this", kTrainingNote);
    if (any(runs_, was_attacked_in_training)) {
      constexpr std::string_view kTitle = "The attack in training";
      html += heading(contents_.add(kTitle, 2), kTitle) + render_chart(attack_chart(runs_)) +
              folded("How to read this", kAttackNote);
    }
    body_ += section(id, "Training", html);
  }

  void add_runs() {
    const std::string id = contents_.add(runs_.size() == 1 ? "The run" : "Runs");
    const bool folds = runs_.size() > kMostUnfolded;
    std::string html;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const std::string& name = runs_[i].shown_name();
      const std::string about = render_run_section(runs_[i]);
      if (!folds) contents_.link(name, run_ids_[i]);
      html += folds ? fmt::format("<div class=\"run\" id=\"{}\">{}</div>\n", run_ids_[i],
                                  folded(name, about))
                    : fmt::format(
                          "<article class=\"run\" id=\"{}\">\n<h3 class=\"run-name\">{}"
                          "</h3>\n{}</article>\n",
                          run_ids_[i], escape_html(name), about);
    }
    body_ += section(id, runs_.size() == 1 ? "The run" : "Runs", html);
  }

  const std::vector<RunRecord>& runs_;
  const ReportText& text_;
  Contents contents_;
  std::vector<std::string> run_ids_;
  std::string body_;
};

}  // namespace

std::string render_report(const std::vector<RunRecord>& runs, const ReportText& text) {
  if (runs.empty()) throw Error("report: no runs");
  for (const RunRecord& run : runs) {
    if (!run.certified() && run.rounds.empty()) {
      throw Error("report: {} has neither certificates nor rounds", run.name);
    }
  }
  return Report(runs, text).render();
}

}  // namespace fedsmooth
