#include "fedsmooth/records/rounds.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/records/tsv.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader =
    "round\tloss\tnoisy_accuracy\tperturbation_mean\tperturbation_p95\tprobability_drop\t"
    "gradient_cosine\tdropped\tseconds\tloss_robust\tloss_entropy\n";
constexpr std::string_view kOldHeader =  // of version 0.1
    "round\tloss\tnoisy_accuracy\tperturbation_mean\tperturbation_p95\tprobability_drop\t"
    "gradient_cosine\tdropped\tseconds\n";
constexpr double kAny = 1e300;
constexpr int64_t kMaxCount = 1'000'000'000;

std::string format_finite(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : std::string();
}

std::string format_loss(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.6g}", *value) : std::string();
}

std::string format_optional(const std::optional<double>& value) {
  return value ? format_finite(*value) : std::string();
}

std::optional<double> read_optional(const TsvRow& row, size_t column, double low, double high) {
  return row.cells.at(column) ? std::optional(row.number(column, low, high)) : std::nullopt;
}

double read_finite(const TsvRow& row, size_t column, double low, double high) {
  return read_optional(row, column, low, high).value_or(std::nan(""));
}

}  // namespace

std::string round_header() { return std::string(kHeader); }

std::string format_round(const RoundRow& row) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.3f}\t{}\t{}\n", row.round,
                     format_loss(row.loss), format_optional(row.noisy_accuracy),
                     format_finite(row.perturbation_mean), format_finite(row.perturbation_p95),
                     format_finite(row.probability_drop), format_optional(row.gradient_cosine),
                     row.dropped, row.seconds, format_loss(row.loss_robust),
                     format_loss(row.loss_entropy));
}

std::vector<RoundRow> parse_rounds(std::string_view text, const std::string& name) {
  std::vector<RoundRow> rows;
  const bool has_terms = !text.starts_with(kOldHeader);
  parse_tsv(text, has_terms ? kHeader : kOldHeader, name, [&](const TsvRow& row) {
    rows.push_back(
        {row.whole(0, 1, kMaxCount), read_finite(row, 1, -kAny, kAny), read_optional(row, 2, 0, 1),
         read_finite(row, 3, 0, kAny), read_finite(row, 4, 0, kAny), read_finite(row, 5, -1, 1),
         read_optional(row, 6, -1, 1), row.whole(7, 0, kMaxCount), row.number(8, 0, kAny)});
    if (!has_terms) return;
    rows.back().loss_robust = read_optional(row, 9, -kAny, kAny);
    rows.back().loss_entropy = read_optional(row, 10, -kAny, kAny);
  });
  return rows;
}

std::vector<RoundRow> read_rounds(const std::filesystem::path& path) {
  return parse_rounds(read_file(path), path.string());
}

bool has_attack(const std::vector<RoundRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const RoundRow& row) { return row.perturbation_mean > 0; });
}

}  // namespace fedsmooth
