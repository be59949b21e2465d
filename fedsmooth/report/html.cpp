#include "fedsmooth/report/html.h"

#include <fmt/format.h>

#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figure.h"
#include "fedsmooth/report/histogram.h"
#include "fedsmooth/report/style.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/report/text.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kWhatIsCertified =
    "<p class=\"lead\">Every radius below is a certificate for the <em>smoothed</em> classifier: "
    "<span class=\"formula\">g(x) = argmax<sub>c</sub> P[f(x + ε) = c]</span> with Gaussian noise "
    "ε of standard deviation σ gives the same answer everywhere within that ℓ₂ distance of the "
    "image. It says nothing about the base network f on its own.</p>\n"
    "<p>Each certificate is wrong with probability at most α over its own noise. α is per image: "
    "among N images, up to αN wrong certificates are to be expected.</p>\n";

constexpr std::string_view kAccuracyNote =
    "<p class=\"note\">Certified accuracy at radius r is the share of all images, abstentions "
    "included, that are classified correctly and certified at r or more. The 95% interval "
    "(Clopper–Pearson) is about the choice of test images. “At least” holds with probability 99.9% "
    "over the noise of all certificates together, if images are certified independently.</p>\n";

std::string section(std::string_view title, std::string_view body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escape_html(title), body);
}

std::string draw_curves(const std::vector<ReportRun>& runs) {
  std::vector<Curve> curves;
  for (const ReportRun& run : runs) curves.push_back({run.name, accuracy_curve(run.rows)});
  return fmt::format("<div class=\"curves\">\n{}</div>\n", certified_accuracy_svg(curves));
}

/// Every radius that is in some run's table.
std::set<double> radii_of(const std::vector<ReportRun>& runs) {
  std::set<double> radii;
  for (const ReportRun& run : runs) {
    for (const AtRadius& at : summarize(run.rows).table) radii.insert(at.radius);
  }
  return radii;
}

std::string accuracy_rows(const ReportRun& run, const std::set<double>& radii) {
  std::string values, intervals, bounds;
  for (const double radius : radii) {
    const AtRadius at = accuracy_at(run.rows, radius);
    values += fmt::format("<td>{}</td>", percent(at.accuracy.value));
    intervals += fmt::format("<td>{}–{}</td>", percent(at.accuracy.low), percent(at.accuracy.high));
    bounds += fmt::format("<td>{}</td>", percent_at_least(at.high_probability));
  }
  return fmt::format(
      "<tbody>\n<tr class=\"run\"><th colspan=\"{}\">{}</th></tr>\n"
      "<tr class=\"value\"><th>certified %</th>{}</tr>\n"
      "<tr><th>95% interval</th>{}</tr>\n<tr><th>at least, 99.9%</th>{}</tr>\n</tbody>\n",
      radii.size() + 1, escape_html(run.name), values, intervals, bounds);
}

std::string accuracy_table(const std::vector<ReportRun>& runs) {
  const std::set<double> radii = radii_of(runs);
  std::string table =
      "<div class=\"scroll\"><table class=\"accuracy\">\n<thead><tr><th>ℓ₂ radius</th>";
  for (const double radius : radii) table += fmt::format("<th>{:.2f}</th>", radius);
  table += "</tr></thead>\n";
  for (const ReportRun& run : runs) table += accuracy_rows(run, radii);
  return table + "</table></div>\n";
}

std::string warnings_and_facts(const ReportRun& run, const Summary& summary) {
  std::string body;
  for (const std::string& warning : list_warnings(run.rows, summary)) {
    body += fmt::format("<p class=\"warning\"><strong>Warning.</strong> {}</p>\n",
                        escape_html(warning));
  }
  body += "<dl>\n";
  for (const auto& [name, value] : list_facts(run.rows, summary)) {
    body +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_html(name), escape_html(value));
  }
  return body + "</dl>\n";
}

std::string class_name(const ReportRun& run, size_t label) {
  return label < run.class_names.size() ? run.class_names[label] : fmt::format("{}", label);
}

std::string class_table(const ReportRun& run, const std::vector<ClassSummary>& classes) {
  std::string table =
      "<h3>By class</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>class</th><th>images</th>"
      "<th>predicted</th><th>correct %</th><th>abstained %</th><th>mean radius</th></tr></thead>\n"
      "<tbody>\n";
  for (size_t label = 0; label < classes.size(); ++label) {
    const ClassSummary& c = classes[label];
    if (c.images == 0 && c.predicted == 0) continue;
    table += fmt::format(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td></tr>\n",
        escape_html(class_name(run, label)), c.images, c.predicted, percent(c.correct),
        percent(c.abstained), c.mean_radius);
  }
  return table + "</tbody>\n</table></div>\n";
}

std::string confidence_histogram(const ReportRun& run) {
  std::string legend;
  for (const std::string_view outcome : {"correct", "wrong", "abstained"}) {
    legend += fmt::format(
        "<span><svg viewBox=\"0 0 1 1\"><rect class=\"{0}\" width=\"1\" "
        "height=\"1\"/></svg>{0}</span>",
        outcome);
  }
  return fmt::format(
      "<h3>Lower bound on the probability of the top class</h3>\n"
      "<p class=\"note legend\">{}</p>\n{}"
      "<p class=\"note\">Images by p_lower, in steps of 0.05. The radius grows with it: "
      "σ Φ⁻¹(p_lower), if one-sided.</p>\n",
      legend, p_lower_histogram(run.rows));
}

std::string provenance_table(const ReportRun& run) {
  if (run.provenance.empty()) return {};
  std::string table = "<h3>Provenance</h3>\n<table class=\"provenance\"><tbody>\n";
  for (const auto& [name, value] : run.provenance) {
    table +=
        fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escape_html(name), escape_html(value));
  }
  return table + "</tbody></table>\n";
}

std::string run_section(const ReportRun& run) {
  const Summary summary = summarize(run.rows);
  return section(run.name, warnings_and_facts(run, summary) + class_table(run, summary.classes) +
                               confidence_histogram(run) + provenance_table(run));
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}"
      "<footer>Made by fedsmooth.</footer>\n</body>\n</html>\n",
      title, kReportStyle, body);
}

}  // namespace

std::string render_report(const std::vector<ReportRun>& runs) {
  if (runs.empty()) throw Error("report: no runs");
  std::string body(kWhatIsCertified);
  body += section("Certified accuracy",
                  draw_curves(runs) + accuracy_table(runs) + std::string(kAccuracyNote));
  for (const ReportRun& run : runs) body += run_section(run);
  return page("Certified robustness", body);
}

}  // namespace fedsmooth
