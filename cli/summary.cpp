#include "fedsmooth/report/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/against.h"
#include "cli/summary.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/report/page/html.h"
#include "fedsmooth/report/threats.h"

namespace fedsmooth::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Certified accuracy at each number of malicious clients that the report shows.
json threats_json(const Threats& threats) {
  json all = json::array();
  for (size_t i = 0; i < threats.malicious.size(); ++i) {
    json radii = json::array();
    for (size_t r = 0; r < threats.radii.size(); ++r) {
      radii.push_back(
          {{"radius", threats.radii[r]}, {"certified_accuracy", threats.accuracy[i][r]}});
    }
    all.push_back({{"malicious", threats.malicious[i]}, {"certified_accuracy", radii}});
  }
  return all;
}

json certificates_json(const RunRecord& run) {
  const Summary summary = summarize(run.rows, run.norm);
  json radii = json::array();
  for (const AtRadius& at : summary.table) {
    radii.push_back(
        {{"radius", at.radius},
         {"certified_accuracy", at.accuracy.value},
         {"low", at.accuracy.low},
         {"high", at.accuracy.high},
         {"high_probability", at.high_probability ? json(*at.high_probability) : json()}});
  }
  const auto value = [](const std::optional<Proportion>& share) {
    return share ? json(share->value) : json();
  };
  return {{"name", run.name},
          {"images", summary.images},
          {"norm", norm_name(run.norm)},
          {"certified_accuracy", radii},
          {"abstained", value(summary.abstained)},
          {"wrong_but_certified", value(summary.wrong_but_certified)},
          {"average_certified_radius", summary.average_certified_radius},
          {"distinct_predictions", summary.distinct_predictions},
          {"median_seconds", summary.median_seconds},
          {"unbound", run.unbound()}};
}

}  // namespace

json conformal_json(const ConformalCalibration& c) {
  json summary = {{"images", *c.subject.images}, {"sigma", *c.subject.sigma},
                  {"epsilon", c.epsilon},        {"coverage", c.coverage},
                  {"quantile", c.quantile},      {"seed", seed_json(*c.subject.seed)}};
  if (c.test) summary["test"] = to_json(*c.test);
  return summary;
}

json summary_json(const RunRecord& run) {
  json summary = run.certified() ? certificates_json(run) : json{{"name", run.name}, {"images", 0}};
  if (const auto threats = list_threats(run)) {
    summary["malicious"] = *run.rows.front().malicious;
    summary["against_malicious"] = threats_json(*threats);
  }
  if (run.conformal) summary["conformal"] = conformal_json(*run.conformal);
  return summary;
}

void print_summary(const fs::path& table, const CommandContext& common,
                   const jobs::AgainstOptions& against) {
  const RunRecord run = jobs::load_run(table);
  json summary = summary_json(run);
  summary["certificates"] = table.string();
  std::string text = render_table({run}) + "\n";
  if (against.asked()) {
    const AgainstResult result = jobs::certify_against(run, against);
    summary["against"] = against_json(result);
    text += render_against(result);
  }
  print_result(common, summary, fmt::format("{}{}\n", text, table.string()));
}

}  // namespace fedsmooth::cli
