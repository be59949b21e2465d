#include "fedsmooth/report/page/threat_section.h"

#include <fmt/format.h>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/against.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figures/panels.h"
#include "fedsmooth/report/page/accuracy_chart.h"
#include "fedsmooth/report/page/frame.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/report/threats.h"

namespace fedsmooth {
namespace {

std::string threat_table(const RunRecord& run, const Threats& threats) {
  std::string table = fmt::format(
      "<table class=\"sortable\">\n<thead><tr><th>malicious clients, certified % at {} radius</th>",
      norm_symbol(run.norm));
  for (const double r : threats.radii) {
    table += fmt::format("<th>{}</th>", format_step(run.norm, r));
  }
  table += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < threats.malicious.size(); ++i) {
    table += fmt::format("<tr><th>{}</th>", threats.malicious[i]);
    for (const double share : threats.accuracy[i]) {
      table += fmt::format("<td>{}</td>", percent(share));
    }
    table += "</tr>\n";
  }
  return scrolling(table + "</tbody>\n</table>");
}

// Certified accuracy over the radius, a curve for each number of malicious clients.
std::string threat_figure(const RunRecord& run, const Threats& threats) {
  Panel panel;
  for (const int64_t m : threats.malicious) {
    panel.curves.push_back({fmt::format("against {} malicious", m),
                            accuracy_curve(rows_against(run, m)),
                            {},
                            run.norm});
  }
  if (!has_curves({panel})) return {};
  return render_chart(panel_chart("malicious-" + run.name, {panel}));
}

std::string assumptions(const RunRecord& run) {
  std::string list = "<p class=\"note\">This takes for granted:</p>\n<ul class=\"note\">\n";
  for (const std::string& line : list_assumptions(run)) {
    list += fmt::format("<li>{}</li>\n", escape_html(line));
  }
  return list + "</ul>\n";
}

}  // namespace

std::string render_threat_section(const RunRecord& run) {
  const auto threats = list_threats(run);
  if (!threats) return {};
  return fmt::format(
      "<h3>Malicious clients and perturbations at once</h3>\n{}{}<p class=\"note\">{}</p>\n{}",
      threat_figure(run, *threats), threat_table(run, *threats), escape_html(level_of_threats(run)),
      assumptions(run));
}

std::string render_against_section(const RunRecord& run) {
  if (!run.against) return {};
  const auto& [name, claim, alpha, found] = *run.against;
  std::string radii, shares;
  for (const ShareAtRadius& at : found.certified) {
    radii += fmt::format("<th>{}</th>", format_step(run.norm, at.radius));
    shares += fmt::format("<td>{}</td>", format_proportion(at.share));
  }
  const std::string table =
      found.images == 0
          ? "<p>Every image is of a class to avoid.</p>\n"
          : fmt::format(
                "<div class=\"scroll\"><table>\n<thead><tr><th>{} radius</th>{}</tr></thead>\n"
                "<tbody>\n<tr><th>certified</th>{}</tr>\n</tbody>\n</table></div>\n",
                norm_symbol(run.norm), radii, shares);
  return fmt::format(
      "<h3>Against given classes</h3>\n<p>Within the radius {}: shares of {} images, at α = {} per "
      "image.</p>\n{}<p class=\"note\">This holds if the classes were chosen before the votes were "
      "drawn.</p>\n",
      escape_html(claim), found.images, alpha, table);
}

}  // namespace fedsmooth
