#include "fedsmooth/report/page/run_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/client_accuracy.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/page/accuracy_table.h"
#include "fedsmooth/report/page/frame.h"
#include "fedsmooth/report/page/gallery_section.h"
#include "fedsmooth/report/page/histogram_chart.h"
#include "fedsmooth/report/page/threat_section.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kClientNote =
    "<p>An estimate of what a client may expect on data like its own: certified accuracy of each "
    "class, weighted by the client’s label shares. The interval of the worst is over the choice of "
    "test images and holds for all clients at once. The chart has clients by accuracy at radius 0, "
    "in steps of 5%.</p>\n";

constexpr std::string_view kConfidenceNote =
    "<p>Images by p_lower, in steps of 0.05. The radius grows with it: σ Φ⁻¹(p_lower), if "
    "one-sided.</p>\n";

// Returns what is missing, and the command that does it, which the text has between backticks.
std::string render_not_certified(const RunRecord& run) {
  std::string text = not_certified(run);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  const size_t open = text.find('`'), close = text.rfind('`');
  return fmt::format("<p>{}<code>{}</code>{}.</p>\n", escape_html(text.substr(0, open)),
                     escape_html(text.substr(open + 1, close - open - 1)),
                     escape_html(text.substr(close + 1)));
}

std::string warnings_and_facts(const RunRecord& run) {
  std::string body;
  if (run.shown_name() != run.name) {  // by which its folder is found
    body += fmt::format("<p class=\"note\"><code>{}</code></p>\n", escape_html(run.name));
  }
  if (!run.certified()) body += render_not_certified(run);
  for (const std::string& warning : list_warnings(run)) {
    body += fmt::format("<p class=\"warning\"><strong>Warning.</strong> {}</p>\n",
                        escape_html(warning));
  }
  body += "<dl>\n";
  for (const auto& [name, value] : list_facts(run)) {
    body +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_html(name), escape_html(value));
  }
  return body + "</dl>\n";
}

std::string class_name(const RunRecord& run, size_t label) {
  return label < run.class_names.size() ? run.class_names[label] : fmt::format("{}", label);
}

std::string class_table(const RunRecord& run) {
  const Summary summary = summarize(run.rows);
  const std::vector<ClassSummary>& classes = summary.classes;
  std::string table =
      "<table class=\"sortable\">\n<thead><tr><th>class</th><th>images</th><th>predicted</th>"
      "<th>correct %</th><th>abstained %</th><th>mean radius</th></tr></thead>\n<tbody>\n";
  for (size_t label = 0; label < classes.size(); ++label) {
    const ClassSummary& c = classes[label];
    if (c.images == 0 && c.predicted == 0) continue;
    table += fmt::format(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape_html(class_name(run, label)), c.images, c.predicted, percent(c.correct),
        summary.abstained ? percent(c.abstained) : "", format_mean(run.norm, c.mean_radius));
  }
  return "<div>\n<h4>By class</h4>\n" + scrolling(table + "</tbody>\n</table>") + "</div>\n";
}

/// Says which classes the clients' accuracy knows nothing about.
std::string left_out_note(const RunRecord& run) {
  const std::vector<size_t> left_out = classes_left_out(run.rows, run.clients);
  if (left_out.empty()) return {};
  std::string names;
  for (const size_t label : left_out) {
    names += (names.empty() ? "" : ", ") + escape_html(class_name(run, label));
  }
  return fmt::format("<p class=\"note\">Left out, as no image of theirs is certified: {}.</p>\n",
                     names);
}

std::string client_table(const RunRecord& run) {
  std::string radii, mean, median, worst, interval, number;
  for (const AtRadius& at : summarize(run.rows, run.norm).table) {
    const auto clients = summarize_clients(run.rows, run.clients, at.radius);
    if (!clients) return {};
    radii += fmt::format("<th>{}</th>", format_step(run.norm, at.radius));
    mean += fmt::format("<td>{}</td>", percent(clients->mean));
    median += fmt::format("<td>{}</td>", percent(clients->median));
    worst += fmt::format("<td>{}</td>", percent(clients->worst.accuracy));
    interval +=
        fmt::format("<td>{}–{}</td>", percent(clients->worst_low), percent(clients->worst_high));
    number += fmt::format("<td>{}</td>", clients->worst.client);
  }
  const std::string table = fmt::format(
      "<table>\n<thead><tr><th>{} radius</th>{}</tr></thead>\n<tbody>\n"
      "<tr><th>mean %</th>{}</tr>\n<tr><th>median %</th>{}</tr>\n"
      "<tr><th>worst %</th>{}</tr>\n<tr><th>95% interval</th>{}</tr>\n"
      "<tr><th>worst client</th>{}</tr>\n</tbody>\n</table>",
      norm_symbol(run.norm), radii, mean, median, worst, interval, number);
  return fmt::format("<div>\n<h4>By client</h4>\n{}{}{}{}</div>\n", scrolling(table),
                     left_out_note(run),
                     render_chart(client_chart(accuracy_by_client(run.rows, run.clients, 0))),
                     folded("How to read this", kClientNote));
}

std::string confidence_part(const RunRecord& run) {
  if (run.rows.front().published) return {};
  return fmt::format("<div>\n<h4>How sure the certificates are</h4>\n{}{}</div>\n",
                     render_chart(confidence_chart(run.rows)),
                     folded("How to read this", kConfidenceNote));
}

std::string radius_part(const RunRecord& run) {
  return fmt::format("<div>\n<h4>By radius</h4>\n{}</div>\n", radius_table(run));
}

std::string experiment_text(const RunRecord& run) {
  if (run.experiment.empty()) return {};
  std::string lines;  // escape_html() makes one line of what it gets
  for (size_t begin = 0; begin < run.experiment.size();) {
    const size_t end = std::min(run.experiment.find('\n', begin), run.experiment.size());
    lines += escape_html(run.experiment.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return folded("Experiment", "<pre>" + lines + "</pre>\n");
}

std::string provenance_table(const RunRecord& run) {
  if (run.provenance.empty()) return {};
  std::string table = "<table class=\"provenance\"><tbody>\n";
  for (const auto& [name, value] : run.provenance) {
    table +=
        fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escape_html(name), escape_html(value));
  }
  return folded("Provenance", table + "</tbody></table>\n");
}

}  // namespace

std::string render_run_section(const RunRecord& run) {
  std::string body = warnings_and_facts(run);
  if (run.certified()) {
    body += render_threat_section(run) + render_against_section(run) + render_gallery(run) +
            "<div class=\"pair\">\n" + radius_part(run) + confidence_part(run) + class_table(run) +
            client_table(run) + "</div>\n";
  }
  return body + experiment_text(run) + provenance_table(run);
}

}  // namespace fedsmooth
