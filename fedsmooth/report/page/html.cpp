#include "fedsmooth/report/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figures/distribution_figure.h"
#include "fedsmooth/report/figures/history_figure.h"
#include "fedsmooth/report/page/chart.h"
#include "fedsmooth/report/page/frame.h"
#include "fedsmooth/report/page/gallery_section.h"
#include "fedsmooth/report/page/run_section.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kWhatIsCertified =
    "<p class=\"lead\">Every radius below is a certificate for the <em>smoothed</em> classifier: "
    "<span class=\"formula\">g(x) = argmax<sub>c</sub> P[f(x + ε) = c]</span> with Gaussian noise "
    "ε of standard deviation σ gives the same answer everywhere within that {} distance of the "
    "image. It says nothing about the base network f on its own.</p>\n{}"
    "<p>Each certificate is wrong with probability at most α over its own noise. α is per image: "
    "among N images, up to αN wrong certificates are to be expected.</p>\n";

constexpr std::string_view kOtherNorm =
    "<p>Radii were certified in ℓ₂. For images of d values, an ℓ₂ radius r certifies the ℓ∞ radius "
    "r / √d and the ℓ₁ radius r. Attacks, which were in ℓ₂, are left out.</p>\n";

constexpr std::string_view kAccuracyNote =
    "<p class=\"note\">Certified accuracy at radius r is the share of all images, abstentions "
    "included, that are classified correctly and certified at r or more. The 95% interval "
    "(Clopper–Pearson) is about the choice of test images. “At least” holds with probability 99.9% "
    "over the noise of all certificates together, if images are certified independently.</p>\n";

constexpr std::string_view kAttackedNote =
    "<p class=\"note\">“Attacked” (thin dashes) is the share of images that withstood every attack "
    "of at most r. Accuracy under the strongest attack lies between it and the certified share, "
    "as far as the same images were taken for both.</p>\n";

constexpr std::string_view kPublishedNote =
    "<p class=\"note\">Published tables state radii, not the counts behind them, so that nothing "
    "in "
    "them was recomputed. Where α is not stated, “at least” is empty.</p>\n";

constexpr std::string_view kDistributionNote =
    "<p class=\"note\">The share of all images by the lower bound on the probability of the answer "
    "and by radius. Images that are wrong or abstained on stand at the left. An average certified "
    "radius can grow by giving up on hard images: then the left end grows with it. Published "
    "tables have bounds only where σ is given.</p>\n";

constexpr std::string_view kTrainingNote =
    "<p class=\"note\">Loss is the mean over a round’s SGD steps; noisy accuracy that of the "
    "smoothed "
    "model on some test images, in the rounds that evaluate it.</p>\n";

constexpr std::string_view kAttackNote =
    "<p class=\"note\">On each client’s first minibatch of a round: how far the adversarial "
    "examples "
    "lie from their images, in units of ε; by how much the true class’s smoothed probability "
    "falls; "
    "the cosine between the one-point and the true gradient, where measured. An attack that "
    "reaches "
    "ε without any such fall is not better than noise. Runs without an attack are left out.</p>\n";

constexpr size_t kMostCurves = 12;   // that one figure can show
constexpr size_t kMostUnfolded = 6;  // sections about a run each

std::string what_is_certified(Norm norm) {
  return fmt::format(kWhatIsCertified, norm_symbol(norm), norm == Norm::kL2 ? "" : kOtherNorm);
}

std::string named_figure(const NamedFigure& named) {
  const std::string name = escape_html(named.name);
  if (!named.figure) {
    return fmt::format("<p class=\"note\">{} is left out: none of its runs is certified.</p>\n",
                       name);
  }
  return fmt::format("<figure>\n{}<figcaption><strong>{}.</strong> {}</figcaption>\n</figure>\n",
                     figure(*named.figure), name, escape_html(named.caption));
}

std::string figures_section(const std::vector<NamedFigure>& figures) {
  if (figures.empty()) return {};
  std::string body;
  for (const NamedFigure& named : figures) body += named_figure(named);
  return section("Figures", body);
}

/// Every radius that is in some run's table.
std::set<double> radii_of(const std::vector<RunRecord>& runs) {
  std::set<double> radii;
  for (const RunRecord& run : runs) {
    if (!run.certified()) continue;
    for (const AtRadius& at : summarize(run.rows, run.norm).table) radii.insert(at.radius);
  }
  return radii;
}

/// An upper bound where some attack was at most as long as the radius.
std::string attacked_row(const std::vector<AttackRow>& attacks, const std::set<double>& radii) {
  if (attacks.empty()) return {};
  const std::vector<CurvePoint> curve = attacked_accuracy(attacks);
  std::string cells;
  for (const double radius : radii) {
    const auto accuracy = attacked_at(curve, radius);
    cells += fmt::format("<td>{}</td>", accuracy ? percent(*accuracy) : "");
  }
  return fmt::format("<tr><th>attacked %</th>{}</tr>\n", cells);
}

std::string accuracy_rows(const RunRecord& run, const std::set<double>& radii) {
  std::string values, intervals, bounds;
  for (const double radius : radii) {
    if (!can_certify(run, radius)) {
      for (std::string* row : {&values, &intervals, &bounds}) *row += "<td></td>";
      continue;
    }
    const AtRadius at = accuracy_at(run.rows, radius);
    values += fmt::format("<td>{}</td>", percent(at.accuracy.value));
    intervals += fmt::format("<td>{}–{}</td>", percent(at.accuracy.low), percent(at.accuracy.high));
    bounds += fmt::format("<td>{}</td>",
                          at.high_probability ? percent_at_least(*at.high_probability) : "");
  }
  return fmt::format(
      "<tbody>\n<tr class=\"run\"><th colspan=\"{}\">{}</th></tr>\n"
      "<tr class=\"value\"><th>certified %</th>{}</tr>\n"
      "<tr><th>95% interval</th>{}</tr>\n<tr><th>at least, 99.9%</th>{}</tr>\n{}</tbody>\n",
      radii.size() + 1, escape_html(run.name), values, intervals, bounds,
      attacked_row(run.attacks, radii));
}

std::string accuracy_table(const std::vector<RunRecord>& runs) {
  const std::set<double> radii = radii_of(runs);
  const Norm norm = runs[0].norm;
  std::string table =
      fmt::format("<div class=\"scroll\"><table class=\"accuracy\">\n<thead><tr><th>{} radius</th>",
                  norm_symbol(norm));
  for (const double radius : radii) table += fmt::format("<th>{}</th>", format_step(norm, radius));
  table += "</tr></thead>\n";
  for (const RunRecord& run : runs) {
    if (run.certified()) table += accuracy_rows(run, radii);
  }
  return table + "</table></div>\n";
}

bool any(const std::vector<RunRecord>& runs, bool (*has)(const RunRecord&)) {
  return std::any_of(runs.begin(), runs.end(), has);
}

bool any_certified(const std::vector<RunRecord>& runs) {
  return any(runs, [](const RunRecord& run) { return run.certified(); });
}

bool any_published(const std::vector<RunRecord>& runs) {
  return any(runs,
             [](const RunRecord& run) { return run.certified() && run.rows.front().published; });
}

std::string distribution_part(const std::vector<RunRecord>& runs) {
  return fmt::format("<h3>What becomes of all images</h3>\n{}{}", figure(distribution_figure(runs)),
                     kDistributionNote);
}

std::vector<Curve> curves_of(const std::vector<RunRecord>& runs) {
  std::vector<Curve> curves;
  for (const RunRecord& run : runs) curves.push_back(curve_of(run, run.name));
  return curves;
}

std::string certified_section(const std::vector<RunRecord>& runs, bool drawn) {
  if (!any_certified(runs)) return {};
  const bool attacked = any(runs, [](const RunRecord& run) { return !run.attacks.empty(); });
  return section(
      "Certified accuracy",
      fmt::format("{}{}{}{}{}{}", drawn ? render_chart(curves_of(runs)) : "", accuracy_table(runs),
                  kAccuracyNote, attacked ? kAttackedNote : "",
                  any_published(runs) ? kPublishedNote : "", drawn ? distribution_part(runs) : ""));
}

std::string training_section(const std::vector<RunRecord>& runs) {
  if (!any(runs, [](const RunRecord& run) { return !run.rounds.empty(); })) return {};
  std::string body = figure(training_figure(runs)) + std::string(kTrainingNote);
  if (any(runs, [](const RunRecord& run) { return has_attack(run.rounds); })) {
    body += fmt::format("<h3>The attack in training</h3>\n{}{}", figure(attack_figure(runs)),
                        kAttackNote);
  }
  return section("Training", body);
}

std::string run_sections(const std::vector<RunRecord>& runs) {
  std::string body;
  for (const RunRecord& run : runs) {
    if (runs.size() <= kMostUnfolded) {
      body += section(run.name, render_run_section(run));
    } else {
      body += fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_html(run.name),
                          render_run_section(run));
    }
  }
  return runs.size() <= kMostUnfolded ? body : section("Runs", body);
}

}  // namespace

std::string render_report(const std::vector<RunRecord>& runs,
                          const std::vector<NamedFigure>& figures) {
  if (runs.empty()) throw Error("report: no runs");
  for (const RunRecord& run : runs) {
    if (!run.certified() && run.rounds.empty()) {
      throw Error("report: {} has neither certificates nor rounds", run.name);
    }
  }
  const bool certified = any_certified(runs);
  const bool all_at_once = figures.empty() && runs.size() <= kMostCurves;
  return page(certified ? "Certified robustness" : "Training history",
              fmt::format("{}{}{}{}{}{}", certified ? what_is_certified(runs[0].norm) : "",
                          render_noise(runs), figures_section(figures),
                          certified_section(runs, all_at_once),
                          all_at_once ? training_section(runs) : "", run_sections(runs)));
}

}  // namespace fedsmooth
