#include "fedsmooth/report/page/compare_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/page/accuracy_chart.h"
#include "fedsmooth/report/page/frame.h"
#include "fedsmooth/report/page/histogram_chart.h"
#include "fedsmooth/report/page/notes.h"
#include "fedsmooth/report/threats.h"
#include "fedsmooth/report/verdict.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kNote =
    "<p>Certified accuracy is the share of the images that both tables have, "
    "abstentions included, that are classified correctly and certified at the radius or more. "
    "A − B has 95% intervals over the choice of test images. They are paired: images on which both "
    "agree say nothing and widen nothing. With an asterisk they are exact, as the tables differ "
    "on fewer than {} images; such an interval always contains 0. “Only A” counts the images that "
    "A "
    "certifies and B does not.</p>\n";

constexpr std::string_view kPublishedPairNote =
    "<p>Published tables state radii, not the counts behind them, so that nothing in them was "
    "recomputed.</p>\n";

std::string signed_points(double share) { return fmt::format("{:+.1f}", 100 * share); }

std::string interval(const Difference& d) {
  return fmt::format("{} to {}{}", signed_points(d.low), signed_points(d.high), d.exact ? "*" : "");
}

std::string signed_mean(Norm norm, double radius) {
  return (radius < 0 ? "-" : "+") + format_mean(norm, std::abs(radius));
}

std::string acr_interval(const PairedComparison& paired) {
  if (!paired.acr) return "too few images differ";
  return fmt::format("{} to {}", signed_mean(paired.norm, paired.acr->low),
                     signed_mean(paired.norm, paired.acr->high));
}

std::string html_row(std::string_view name, std::initializer_list<std::string> cells) {
  std::string row = fmt::format("<tr><th>{}</th>", name);
  for (const std::string& cell : cells) row += fmt::format("<td>{}</td>", cell);
  return row + "</tr>\n";
}

std::string html_table(const PairedComparison& paired) {
  std::string rows;
  for (const PairedAtRadius& at : paired.table) {
    rows += html_row(
        format_step(paired.norm, at.radius),
        {percent(at.a), percent(at.b), signed_points(at.difference.value), interval(at.difference),
         fmt::format("{}", at.only_a), fmt::format("{}", at.only_b)});
  }
  const Norm norm = paired.norm;
  rows += html_row("average radius",
                   {format_mean(norm, paired.acr_a), format_mean(norm, paired.acr_b),
                    signed_mean(norm, paired.acr_a - paired.acr_b), acr_interval(paired), "", ""});
  return fmt::format(
      "<table>\n<thead><tr><th>{} radius</th><th>A %</th><th>B %</th><th>A − B, points</th>"
      "<th>95% interval</th><th>only A</th><th>only B</th></tr></thead>\n"
      "<tbody>\n{}</tbody>\n</table>",
      norm_symbol(norm), rows);
}

std::string html_names(const ComparedRuns& runs) {
  return fmt::format(
      "<dl>\n<div><dt>A</dt><dd>{}</dd></div>\n<div><dt>B</dt><dd>{}</dd></div>\n"
      "<div><dt>images</dt><dd>{} that both have (A {}, B {})</dd></div>\n</dl>\n",
      escape_html(runs.a.shown_name()), escape_html(runs.b.shown_name()), runs.paired.images,
      runs.images_a, runs.images_b);
}

std::string html_warning(const ComparedRuns& runs) {
  const std::string warning = warn_of_other_data(runs);
  if (warning.empty()) return {};
  return fmt::format("<p class=\"warning\"><strong>Warning.</strong> {}</p>\n",
                     escape_html(warning));
}

/// Both at the radius of their verdict, and what the interval of the difference says.
std::string compared_verdict(const ComparedRuns& runs) {
  const double radius = verdict_radius({runs.a, runs.b});
  const auto at = std::ranges::find(runs.paired.table, radius, &PairedAtRadius::radius);
  const PairedAtRadius& found = at == runs.paired.table.end() ? runs.paired.table.front() : *at;
  return fmt::format(
      "Of {} images, A certifies {}% within {} radius {} and B {}%: {} points, 95% interval {}.",
      grouped(runs.paired.images), percent(found.a), norm_symbol(runs.paired.norm),
      format_step(runs.paired.norm, found.radius), percent(found.b),
      signed_points(found.difference.value), interval(found.difference));
}

// Empty unless both are runs of several groups.
std::string html_threats(const std::string& anchor, const ComparedRuns& runs) {
  if (!runs.threats) return {};
  const PairedThreats& t = *runs.threats;
  std::string header, rows;
  for (const double r : t.radii) {
    header += fmt::format("<th>{}</th>", format_step(runs.paired.norm, r));
  }
  for (size_t i = 0; i < t.malicious.size(); ++i) {
    rows += fmt::format("<tr><th>{}</th>", t.malicious[i]);
    for (const PairedAtRadius& at : t.at[i]) {
      rows += fmt::format("<td title=\"A − B: 95% interval {}\">{} / {} ({})</td>",
                          interval(at.difference), percent(at.a), percent(at.b),
                          signed_points(at.difference.value));
    }
    rows += "</tr>\n";
  }
  return section(
      anchor, "Malicious clients and perturbations at once",
      scrolling(fmt::format("<table class=\"sortable\">\n<thead><tr><th>malicious clients, at {} "
                            "radius</th>{}</tr></thead>\n"
                            "<tbody>\n{}</tbody>\n</table>",
                            norm_symbol(runs.paired.norm), header, rows)) +
          "<p class=\"note\">A % / B % (A − B), points. Intervals, beside the pointer, are of each "
          "difference by itself.</p>\n");
}

bool any_published(const ComparedRuns& runs) {
  return runs.a.rows.front().published || runs.b.rows.front().published;
}

}  // namespace

std::string render_compare_page(const ComparedRuns& runs) {
  Contents contents;
  const std::string both = contents.add("Both, and their difference");
  const std::string threats =
      runs.threats ? contents.add("Malicious clients and perturbations at once") : "";
  const std::string all = contents.add("What becomes of all images");
  const std::vector<RunRecord> records = {runs.a, runs.b};
  PageParts parts{fmt::format("{} against {}", runs.a.shown_name(), runs.b.shown_name())};
  parts.lead = fmt::format("<p class=\"verdict\">{}</p>\n<p class=\"terms\">{}</p>\n{}{}",
                           escape_html(compared_verdict(runs)), escape_html(verdict_terms(records)),
                           html_warning(runs), html_names(runs));
  parts.contents = contents.render();
  parts.body =
      section(both, "Both, and their difference",
              fmt::format("{}{}{}", render_chart(difference_chart(runs)),
                          scrolling(html_table(runs.paired)),
                          folded("How to read this",
                                 fmt::format(kNote, kFewImages) +
                                     std::string(any_published(runs) ? kPublishedPairNote : "")))) +
      html_threats(threats, runs) +
      section(all, "What becomes of all images",
              render_chart(distribution_chart(records)) +
                  folded("How to read this", kDistributionNote));
  return page(parts);
}

std::string render_compare_table(const ComparedRuns& runs) {
  constexpr size_t kLongestName = 90;
  const PairedComparison& paired = runs.paired;
  const Norm norm = paired.norm;
  constexpr std::string_view kLine = "  {:>14}{:>9}{:>9}{:>10}{:>24}{:>8}{:>8}\n";
  std::string text = fmt::format(
      "A  {}\nB  {}\n{} images that both have (A {}, B {})\n", shorten(runs.a.name, kLongestName),
      shorten(runs.b.name, kLongestName), paired.images, runs.images_a, runs.images_b);
  text += fmt::format(kLine, fmt::format("{} radius", norm_name(norm)), "A %", "B %", "A - B",
                      "95% interval", "only A", "only B");
  for (const PairedAtRadius& at : paired.table) {
    text += fmt::format(kLine, format_step(norm, at.radius), percent(at.a), percent(at.b),
                        signed_points(at.difference.value), interval(at.difference), at.only_a,
                        at.only_b);
  }
  text += fmt::format(kLine, "average radius", format_mean(norm, paired.acr_a),
                      format_mean(norm, paired.acr_b),
                      signed_mean(norm, paired.acr_a - paired.acr_b), acr_interval(paired), "", "");
  text += "A - B in points, paired; intervals are over the choice of test images.\n";
  if (std::any_of(paired.table.begin(), paired.table.end(),
                  [](const PairedAtRadius& at) { return at.difference.exact; })) {
    text += fmt::format("* exact, as they differ on fewer than {} images; it always contains 0.\n",
                        kFewImages);
  }
  if (any_published(runs)) {
    text += "Published tables state no counts: nothing in them was recomputed.\n";
  }
  if (runs.threats) text += render_compared_threats(norm, *runs.threats);
  const std::string warning = warn_of_other_data(runs);
  return warning.empty() ? text : text + "warning: " + warning + "\n";
}

}  // namespace fedsmooth
