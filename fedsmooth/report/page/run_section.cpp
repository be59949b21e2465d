#include "fedsmooth/report/page/run_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/client_accuracy.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figures/histogram.h"
#include "fedsmooth/report/page/gallery_section.h"
#include "fedsmooth/report/page/threat_section.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kNotCertifiedYet =
    "<p>Not certified yet: <code>fedsmooth certify</code> does it.</p>\n";

constexpr std::string_view kClientNote =
    "<p class=\"note\">An estimate of what a client may expect on data like its own: certified "
    "accuracy of each class, weighted by the client’s label shares. The interval of the worst is "
    "over the choice of test images and holds for all clients at once. Below, clients by accuracy "
    "at radius 0, in steps of 5%.</p>\n";

std::string warnings_and_facts(const RunRecord& run) {
  std::string body;
  if (!run.certified()) body += kNotCertifiedYet;
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
      "<h3>By class</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>class</th><th>images</th>"
      "<th>predicted</th><th>correct %</th><th>abstained %</th><th>mean radius</th></tr></thead>\n"
      "<tbody>\n";
  for (size_t label = 0; label < classes.size(); ++label) {
    const ClassSummary& c = classes[label];
    if (c.images == 0 && c.predicted == 0) continue;
    table += fmt::format(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape_html(class_name(run, label)), c.images, c.predicted, percent(c.correct),
        summary.abstained ? percent(c.abstained) : "", format_mean(run.norm, c.mean_radius));
  }
  return table + "</tbody>\n</table></div>\n";
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
  return fmt::format(
      "<h3>By client</h3>\n<div class=\"scroll\"><table>\n"
      "<thead><tr><th>{} radius</th>{}</tr></thead>\n<tbody>\n"
      "<tr><th>mean %</th>{}</tr>\n<tr><th>median %</th>{}</tr>\n"
      "<tr><th>worst %</th>{}</tr>\n<tr><th>95% interval</th>{}</tr>\n"
      "<tr><th>worst client</th>{}</tr>\n"
      "</tbody>\n</table></div>\n{}{}{}",
      norm_symbol(run.norm), radii, mean, median, worst, interval, number, kClientNote,
      left_out_note(run), client_histogram(accuracy_by_client(run.rows, run.clients, 0)));
}

std::string confidence_histogram(const RunRecord& run) {
  if (run.rows.front().published) return {};
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

std::string experiment_text(const RunRecord& run) {
  if (run.experiment.empty()) return {};
  std::string lines;  // escape_html() makes one line of what it gets
  for (size_t begin = 0; begin < run.experiment.size();) {
    const size_t end = std::min(run.experiment.find('\n', begin), run.experiment.size());
    lines += escape_html(run.experiment.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return "<details><summary>Experiment</summary>\n<pre>" + lines + "</pre></details>\n";
}

std::string provenance_table(const RunRecord& run) {
  if (run.provenance.empty()) return {};
  std::string table = "<h3>Provenance</h3>\n<table class=\"provenance\"><tbody>\n";
  for (const auto& [name, value] : run.provenance) {
    table +=
        fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escape_html(name), escape_html(value));
  }
  return table + "</tbody></table>\n";
}

}  // namespace

std::string render_run_section(const RunRecord& run) {
  std::string body = warnings_and_facts(run);
  if (run.certified()) {
    body += render_threat_section(run) + render_gallery(run) + class_table(run) +
            client_table(run) + confidence_histogram(run);
  }
  return body + experiment_text(run) + provenance_table(run);
}

}  // namespace fedsmooth
