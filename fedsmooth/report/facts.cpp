#include "fedsmooth/report/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/client_accuracy.h"

namespace fedsmooth {
namespace {

constexpr size_t kLongestDescription = 72;

/// The value that all rows with votes share, or the range of their values. A published table that
/// does not state it has 0 there.
template <typename Field>
std::string range_of(const std::vector<CertificateRow>& rows, Field field) {
  if (rows.front().published && field(rows.front()) == 0) return "not stated";
  auto low = field(rows.front()), high = low;
  bool found = false;
  for (const CertificateRow& row : rows) {
    if (!row.estimated()) continue;
    low = found ? std::min(low, field(row)) : field(row);
    high = found ? std::max(high, field(row)) : field(row);
    found = true;
  }
  if (low == high) return fmt::format("{}", low);
  return fmt::format("{} to {}", low, high);
}

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string describe_draws(const CertificateRow& row) {
  if (row.published) return "not stated";
  return row.shared
             ? "the same for all images (--noise-bank, until 0.2): each certificate holds, but "
               "their errors go together"
             : "fresh for each image";
}

// How many votes images got, unless it was a fixed number.
void add_rule(const std::vector<CertificateRow>& rows, Facts& facts) {
  const CertificateRow& row = rows.front();
  const int64_t cap = std::ranges::max(rows, {}, &CertificateRow::cap).cap;
  if (row.rule == VoteRule::kPlan) {
    facts.emplace_back("votes",
                       fmt::format("planned by a pilot of {}, at most {} (--plan)", row.n0, cap));
  }
  if (row.rule == VoteRule::kRadii) {
    facts.emplace_back("votes", fmt::format("until radii {} were decided, at most {} (--radii); "
                                            "what lies between radii is not known",
                                            fmt::join(row.radii, ", "), cap));
  }
}

std::string describe_norm(const RunRecord& run) {
  if (run.norm == Norm::kL1) return "l1: the l2 radius itself";
  return fmt::format("linf: the l2 radius divided by sqrt({})", run.values);
}

void add_norm(const RunRecord& run, Facts& facts) {
  if (run.norm == Norm::kL2) return;
  facts.emplace_back("norm of the radii", describe_norm(run));
}

void add_certificate_facts(const RunRecord& run, Facts& facts) {
  using Row = const CertificateRow&;
  const std::vector<CertificateRow>& rows = run.rows;
  const Summary summary = summarize(rows, run.norm);
  facts.emplace_back("images", fmt::format("{}", summary.images));
  if (summary.abstained) {
    facts.emplace_back("abstained", format_proportion(*summary.abstained));
    facts.emplace_back("wrong but certified", format_proportion(*summary.wrong_but_certified));
  }
  const Facts more = {
      {"average certified radius", format_mean(run.norm, summary.average_certified_radius)},
      {"classes predicted", fmt::format("{} ({} occur as labels)", summary.distinct_predictions,
                                        summary.distinct_labels)},
      {"sigma", range_of(rows, [](Row row) { return row.sigma; })},
      {rows.front().malicious ? "alpha, per claim" : "alpha, per image",
       range_of(rows, [](Row row) { return row.alpha; })},
      {"n0", range_of(rows, [](Row row) { return row.n0; })},
      {"n", range_of(rows, [](Row row) { return row.certificate.counts.n; })},
      {"draws", describe_draws(rows.front())},
      {"median time", fmt::format("{:.3g} s per certificate", summary.median_seconds)},
  };
  facts.insert(facts.end(), more.begin(), more.end());
  if (rows.front().malicious) {
    facts.emplace_back("radii are against",
                       "at most " + malicious_clients(*rows.front().malicious));
  }
  add_rule(rows, facts);
}

// Images without votes, if some were left out.
void add_left_out(const std::vector<CertificateRow>& rows, Facts& facts) {
  const auto left_out =
      std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !row.estimated(); });
  if (left_out == 0) return;
  facts.emplace_back("not estimated", fmt::format("{} of {} images, whose class is wrong "
                                                  "(--only-correct)",
                                                  left_out, rows.size()));
}

void add_client_facts(const RunRecord& run, Facts& facts) {
  const auto clients = summarize_clients(run.rows, run.clients, 0);
  if (!clients) return;
  facts.emplace_back("worst client",
                     fmt::format("{} (client {}, of {} looked at)",
                                 format_proportion({clients->worst.accuracy, clients->worst_low,
                                                    clients->worst_high}),
                                 clients->worst.client, clients->clients));
}

void add_attack_facts(const std::vector<AttackRow>& attacks, Facts& facts) {
  if (attacks.empty()) return;
  const CurvePoint hardest = attacked_accuracy(attacks).back();
  facts.emplace_back("under attack", fmt::format("at most {}% at epsilon {:.4g}",
                                                 percent(hardest.accuracy), hardest.radius));
}

void add_conformal_facts(const RunRecord& run, Facts& facts) {
  if (!run.conformal) return;
  const ConformalCalibration& c = *run.conformal;
  std::string text =
      fmt::format("hold the label with probability at least {:.4g}, within l2 distance {:.4g}",
                  c.coverage, c.epsilon);
  if (c.test) {
    text += fmt::format("; of {} other images, unmoved, {}% did, with {:.2f} classes on average",
                        c.test->images, percent(c.test->coverage), c.test->mean_size);
  }
  facts.emplace_back("conformal sets", text);
}

double mean_seconds(const std::vector<RoundRow>& rounds) {
  double sum = 0;
  for (const RoundRow& row : rounds) sum += row.seconds;
  return sum / static_cast<double>(rounds.size());
}

void add_training_facts(const RunRecord& run, Facts& facts) {
  const std::vector<RoundRow>& rounds = run.rounds;
  if (rounds.empty()) return;
  facts.emplace_back("rounds",
                     fmt::format("{}{}, {:.3g} s each", rounds.back().round,
                                 run.groups > 0 ? " in each group" : "", mean_seconds(rounds)));
  if (run.groups > 0) {
    facts.emplace_back(
        "groups",
        fmt::format("{}; loss, noisy accuracy and seconds are means over them", run.groups));
  }
  facts.emplace_back("loss", fmt::format("{:.4g} in the last round", rounds.back().loss));
  const auto evaluated = std::find_if(rounds.rbegin(), rounds.rend(),
                                      [](const RoundRow& row) { return row.noisy_accuracy; });
  if (evaluated != rounds.rend()) {
    facts.emplace_back(
        "noisy accuracy",
        fmt::format("{}% (round {})", percent(*evaluated->noisy_accuracy), evaluated->round));
  }
}

}  // namespace

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string percent_at_least(double share) { return percent(std::floor(1000 * share) / 1000); }

std::string format_proportion(const Proportion& share) {
  return fmt::format("{}% [{}, {}]", percent(share.value), percent(share.low), percent(share.high));
}

std::string malicious_clients(int64_t count) {
  return fmt::format("{} malicious client{}", count, count == 1 ? "" : "s");
}

std::string not_certified(const RunRecord& run) {
  const std::string path = run.path.empty() ? "RUN" : shell_word(run.path);
  if (run.unfinished) {
    return fmt::format("not trained to the end; `fedsmooth train --resume {}` continues", path);
  }
  return fmt::format("not certified yet; `fedsmooth certify {}` does it", path);
}

std::vector<std::pair<std::string, std::string>> list_facts(const RunRecord& run) {
  Facts facts;
  if (run.certified()) {
    add_norm(run, facts);
    add_certificate_facts(run, facts);
    add_left_out(run.rows, facts);
    add_client_facts(run, facts);
  }
  add_attack_facts(run.attacks, facts);
  add_conformal_facts(run, facts);
  add_training_facts(run, facts);
  if (run.certified() && run.rows.front().published) {
    facts.emplace_back("counts", "none: a published table, whose radii cannot be recomputed");
  } else if (run.certified()) {
    facts.emplace_back("base classifier", shorten(run.rows.front().base, kLongestDescription));
    if (run.unbound()) {
      facts.emplace_back("rows", "unbound: an earlier version did not tie them to model and data");
    }
  }
  return facts;
}

}  // namespace fedsmooth
