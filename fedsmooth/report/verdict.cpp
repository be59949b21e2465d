#include "fedsmooth/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr size_t kMostNamed = 3;

using Runs = std::vector<const RunRecord*>;

Runs certified_among(const std::vector<RunRecord>& runs) {
  Runs found;
  for (const RunRecord& run : runs) {
    if (run.certified()) found.push_back(&run);
  }
  return found;
}

/// 42.0% as "42%".
std::string short_percent(double share) {
  std::string text = percent(share);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + "%";
}

/// In quotes if it would not stand out as one name.
std::string in_sentence(const std::string& name) {
  return name.find_first_of(" ,") == std::string::npos ? name : "“" + name + "”";
}

/// The run's name, and what else its radii withstand.
std::string subject_of(const RunRecord& run) {
  const int64_t malicious = run.rows.front().malicious.value_or(0);
  if (malicious == 0) return in_sentence(run.shown_name());
  return fmt::format("{} (against {})", in_sentence(run.shown_name()),
                     malicious_clients(malicious));
}

std::string enumerate(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

/// The least and the largest value of the rows' field, if every table states it.
struct Range {
  double low = 0, high = 0;
  bool stated = false;
};

Range stated_range(const Runs& runs, const std::function<double(const CertificateRow&)>& field) {
  Range range;
  for (const RunRecord* run : runs) {
    for (const CertificateRow& row : run->rows) {
      if (!row.published && !row.estimated()) continue;
      const double value = field(row);
      if (value == 0) return {};
      range.low = range.stated ? std::min(range.low, value) : value;
      range.high = range.stated ? std::max(range.high, value) : value;
      range.stated = true;
    }
  }
  return range;
}

std::string format_range(const Range& range, const std::function<std::string(double)>& format) {
  const std::string low = format(range.low), high = format(range.high);
  return low == high ? low : low + " to " + high;
}

std::string format_count(double count) { return grouped(std::llround(count)); }

double accuracy(const RunRecord& run, double radius) {
  return accuracy_at(run.rows, radius).accuracy.value;
}

std::string name_all(const Runs& runs, double radius, const std::string& where) {
  std::string text;
  for (const RunRecord* run : runs) {
    const std::string share = short_percent(accuracy(*run, radius));
    text += text.empty()
                ? fmt::format("{} certifies {} of the images {}", subject_of(*run), share, where)
                : fmt::format(", {} {}", subject_of(*run), share);
  }
  return text + ".";
}

std::string name_ends(const Runs& runs, double radius, const std::string& where) {
  const RunRecord& best = *runs.front();
  const RunRecord& worst = *runs.back();
  return fmt::format("Of {} runs, {} certifies the most images {}, {}, and {} the fewest, {}.",
                     runs.size(), subject_of(best), where, short_percent(accuracy(best, radius)),
                     subject_of(worst), short_percent(accuracy(worst, radius)));
}

std::string not_certified(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    if (!run.certified()) names.push_back(in_sentence(run.shown_name()));
  }
  if (names.empty()) return {};
  if (names.size() > kMostNamed) return fmt::format(" {} are not certified yet.", names.size());
  return fmt::format(" {} {} not certified yet.", enumerate(names),
                     names.size() == 1 ? "is" : "are");
}

std::string training_verdict(const std::vector<RunRecord>& runs) {
  std::vector<std::string> parts;
  for (const RunRecord& run : runs) {
    if (run.rounds.empty() || parts.size() == kMostNamed) continue;
    parts.push_back(fmt::format("{} has trained for {} rounds; its loss is {:.3g}.",
                                in_sentence(run.shown_name()), run.rounds.back().round,
                                run.rounds.back().loss));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

/// Names of the data sets that the tables state.
std::vector<std::string> data_of(const Runs& runs) {
  std::set<std::string> names;
  for (const RunRecord* run : runs) {
    if (run->identity.data) names.insert(*run->identity.data);
  }
  return {names.begin(), names.end()};
}

/// Whether the tables are about the same images, as far as they say.
bool have_same_images(const Runs& runs) {
  const RunRecord& first = *runs.front();
  return std::ranges::all_of(runs, [&](const RunRecord* run) {
    return run->rows.size() == first.rows.size() &&
           run->identity.data_sha256 == first.identity.data_sha256 &&
           run->identity.every == first.identity.every;
  });
}

}  // namespace

double verdict_radius(const std::vector<RunRecord>& runs) {
  const Runs certified = certified_among(runs);
  if (certified.empty()) return 0;
  const RunRecord& first = *certified.front();
  const double step = radius_step(first.norm);
  const Range sigma = stated_range(certified, [](const auto& row) { return row.sigma; });
  const double reach = first.norm == Norm::kLinf && first.values == 0
                           ? 0
                           : radius_in(first.norm, sigma.low, first.values);
  for (auto i = std::max<int64_t>(1, std::llround(std::floor(reach / step + 1e-9))); i > 0; --i) {
    const double radius = static_cast<double>(i) * step;
    const bool possible = std::ranges::all_of(
        certified, [&](const RunRecord* run) { return can_certify(*run, radius); });
    const bool some = std::ranges::any_of(
        certified, [&](const RunRecord* run) { return accuracy(*run, radius) > 0; });
    if (possible && some) return radius;
  }
  return 0;
}

std::string verdict(const std::vector<RunRecord>& runs) {
  Runs certified = certified_among(runs);
  if (certified.empty()) return training_verdict(runs) + not_certified(runs);
  const double radius = verdict_radius(runs);
  const Norm norm = certified.front()->norm;
  const std::string where = radius == 0 ? "at radius 0"
                                        : fmt::format("within {} radius {}", norm_symbol(norm),
                                                      format_step(norm, radius));
  std::ranges::stable_sort(certified, std::greater(),
                           [&](const RunRecord* run) { return accuracy(*run, radius); });
  return (certified.size() <= kMostNamed ? name_all(certified, radius, where)
                                         : name_ends(certified, radius, where)) +
         not_certified(runs);
}

std::string verdict_terms(const std::vector<RunRecord>& runs) {
  const Runs certified = certified_among(runs);
  if (certified.empty()) return {};
  Range images{1e18, 0, true};
  for (const RunRecord* run : certified) {
    images.low = std::min(images.low, static_cast<double>(run->rows.size()));
    images.high = std::max(images.high, static_cast<double>(run->rows.size()));
  }
  const std::vector<std::string> data = data_of(certified);
  std::string text = fmt::format("{} images{}{}", format_range(images, format_count),
                                 data.empty() ? "" : " of ", enumerate(data));
  const auto plain = [](double value) { return fmt::format("{}", value); };
  const auto add = [&](std::string_view name, const Range& range, const auto& format) {
    if (range.stated) text += fmt::format(", {} = {}", name, format_range(range, format));
  };
  add("σ", stated_range(certified, [](const auto& row) { return row.sigma; }), plain);
  add("n",
      stated_range(certified,
                   [](const auto& row) { return static_cast<double>(row.certificate.counts.n); }),
      format_count);
  add("α", stated_range(certified, [](const auto& row) { return row.alpha; }), plain);
  return text + (have_same_images(certified) ? "." : ". Not all runs are about the same images.");
}

std::string describe_runs(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) names.push_back(run.shown_name());
  const std::vector<std::string> data = data_of(certified_among(runs));
  return (names.size() <= kMostNamed ? enumerate(names) : fmt::format("{} runs", names.size())) +
         (data.empty() ? "" : " on " + enumerate(data));
}

std::string note_on_rounds(const std::vector<RunRecord>& runs) {
  std::map<int64_t, std::vector<std::string>> by_rounds;
  for (const RunRecord& run : runs) {
    if (!run.rounds.empty()) by_rounds[run.rounds.back().round].push_back(run.shown_name());
  }
  if (by_rounds.size() < 2) return {};
  std::vector<std::string> parts;
  for (const auto& [rounds, names] : by_rounds) {
    parts.push_back(names.size() <= kMostNamed
                        ? fmt::format("{} for {} rounds", enumerate(names), rounds)
                        : fmt::format("{} runs for {} rounds", names.size(), rounds));
  }
  return fmt::format("The runs were not trained equally long: {}.", enumerate(parts));
}

std::string grouped(int64_t count) {
  std::string digits = fmt::format("{}", count);
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

}  // namespace fedsmooth
