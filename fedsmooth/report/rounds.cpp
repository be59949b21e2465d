#include "fedsmooth/report/rounds.h"

#include <charconv>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader =
    "round\tloss\tnoisy_accuracy\tperturbation_mean\tperturbation_p95\tprobability_drop\tdropped\t"
    "seconds\n";
constexpr size_t kColumns = 8;

double parse_number(std::string_view text, const std::string& where) {
  double value = 0.0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw Error("{}: {:?} is no number", where, text);
  }
  return value;
}

RoundRow parse_row(std::string_view line, const std::string& where) {
  std::vector<double> numbers;
  while (true) {
    const size_t tab = line.find('\t');
    const std::string_view cell = line.substr(0, tab);
    // An accuracy that was not measured is an empty cell.
    numbers.push_back(cell.empty() && numbers.size() == 2 ? -1.0 : parse_number(cell, where));
    if (tab == std::string_view::npos) break;
    line.remove_prefix(tab + 1);
  }
  if (numbers.size() != kColumns) {
    throw Error("{}: {} columns, expected {}", where, numbers.size(), kColumns);
  }
  if (!(numbers[0] >= 1 && numbers[0] <= 1e9 && numbers[6] >= 0 && numbers[6] <= 1e9)) {
    throw Error("{}: a round or a number of clients out of range", where);
  }
  return {
      static_cast<int64_t>(numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4], numbers[5],
      static_cast<int64_t>(numbers[6]), numbers[7]};
}

}  // namespace

std::string round_header() { return std::string(kHeader); }

std::string format_round(const RoundRow& row) {
  return fmt::format("{}\t{:.6g}\t{}\t{:.4f}\t{:.4f}\t{:.4f}\t{}\t{:.3f}\n", row.round, row.loss,
                     row.noisy_accuracy < 0 ? "" : fmt::format("{:.4f}", row.noisy_accuracy),
                     row.perturbation_mean, row.perturbation_p95, row.probability_drop, row.dropped,
                     row.seconds);
}

std::vector<RoundRow> parse_rounds(std::string_view text, const std::string& name) {
  if (text.substr(0, kHeader.size()) != kHeader) {
    if (kHeader.substr(0, text.size()) == text) return {};  // cut off
    throw Error("{}:1: not the header of rounds.tsv", name);
  }
  std::vector<RoundRow> rows;
  size_t begin = kHeader.size();
  for (int64_t line = 2;; ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return rows;
    rows.push_back(parse_row(text.substr(begin, end - begin), fmt::format("{}:{}", name, line)));
    begin = end + 1;
  }
}

std::vector<RoundRow> read_rounds(const std::filesystem::path& path) {
  return parse_rounds(read_file(path), path.string());
}

}  // namespace fedsmooth
