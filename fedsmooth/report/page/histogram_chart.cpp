#include "fedsmooth/report/page/histogram_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr double kHistogramWidth = 480, kHistogramHeight = 270;
constexpr double kBinsOfRadii = 25;
constexpr int kBinsOfP = 20;  // over [0, 1]
constexpr const char* kAside = "wrong or abstained";

// A value on an edge belongs to the bin above; the slack is for edges like 0.95.
int whole_bins(double length, double width) {
  return static_cast<int>(std::floor(length / width + 1e-9));
}

/// `count` bins of equal width from `begin` on.
struct Bins {
  double begin, width;
  int count;

  double edge(int i) const { return begin + i * width; }
  int of(double value) const { return std::clamp(whole_bins(value - begin, width), 0, count - 1); }
  /// Where the bin of images that are in no other one begins, with room for its name.
  double aside() const { return begin - width * (1 + std::max(2, count / 6)); }
};

/// What a plot shows of a run.
struct Quantity {
  std::string name;
  Bins bins;
  double (*value)(const CertificateRow&);
  bool (*has)(const RunRecord&);
  std::vector<Tic> tics;
};

double p_of(const CertificateRow& row) { return row.certificate.p_lower; }
double radius_of(const CertificateRow& row) { return row.certificate.radius; }

bool has_radii(const RunRecord& run) { return run.certified(); }
bool has_p(const RunRecord& run) {
  return run.certified() && !(run.rows.front().published && run.rows.front().sigma == 0);
}

Quantity probability_quantity(const std::vector<RunRecord>& runs) {
  double least = 0.5;  // a multi-class radius may rest on less
  for (const RunRecord& run : runs) {
    if (!has_p(run)) continue;
    for (const CertificateRow& row : run.rows) {
      if (row.correct()) least = std::min(least, p_of(row));
    }
  }
  const int first = static_cast<int>(least * kBinsOfP);
  Quantity quantity{"lower bound on the probability of the answer",
                    {static_cast<double>(first) / kBinsOfP, 1.0 / kBinsOfP, kBinsOfP - first},
                    p_of,
                    has_p,
                    {}};
  const int step = quantity.bins.count > 10 ? 4 : 2;
  for (int i = 0; i <= quantity.bins.count; i += step) {
    const double edge = quantity.bins.edge(i);
    quantity.tics.push_back({edge, fmt::format("{:.2g}", edge)});
  }
  return quantity;
}

Quantity radius_quantity(const std::vector<RunRecord>& runs, Norm norm) {
  double largest = 0;
  for (const RunRecord& run : runs) largest = std::max(largest, largest_radius(run.rows));
  if (largest == 0) largest = radius_step(norm);
  const double width = tic_step(largest, kBinsOfRadii);
  Quantity quantity{fmt::format("{} radius", norm_symbol(norm)),
                    {0, width, whole_bins(largest, width) + 1},
                    radius_of,
                    has_radii,
                    {}};
  for (const double at : standard_radii(largest, norm, 6)) {
    quantity.tics.push_back({at, format_step(norm, at)});
  }
  return quantity;
}

/// Shares in percent: of the images that are wrong or abstained on, then of the bins.
std::vector<double> shares(const RunRecord& run, const Quantity& quantity) {
  std::vector<double> counts(quantity.bins.count + 1);
  for (const CertificateRow& row : run.rows) {
    counts[row.correct() ? 1 + quantity.bins.of(quantity.value(row)) : 0] += 1;
  }
  for (double& count : counts) count *= 100 / static_cast<double>(run.rows.size());
  return counts;
}

/// The outline of the bins, and apart from it that of the images in none of them.
Series outline(const std::vector<double>& shares, const Bins& bins, size_t entry) {
  Series series{Series::Kind::kBins, entry};
  series.width = bins.width;
  const double left = bins.aside();
  series.path = {{left, 0},
                 {left, shares[0]},
                 {left + bins.width, shares[0]},
                 {left + bins.width, 0},
                 {left + bins.width, NAN},
                 {bins.begin, 0}};
  for (int i = 0; i < bins.count; ++i) {
    series.path.emplace_back(bins.edge(i), shares[i + 1]);
    series.path.emplace_back(bins.edge(i + 1), shares[i + 1]);
  }
  series.path.emplace_back(bins.edge(bins.count), 0);
  for (size_t i = 0; i < shares.size(); ++i) {
    const double edge = i == 0 ? left : bins.edge(static_cast<int>(i) - 1);
    series.x.push_back(std::stod(fmt::format("{:.6g}", edge)));
    series.y.push_back(std::stod(fmt::format("{:.1f}", shares[i])));
    series.names.push_back(i == 0 ? kAside
                                  : fmt::format("{:.4g} to {:.4g}", edge, edge + bins.width));
  }
  return series;
}

Plot distribution_plot(const Quantity& quantity, const std::vector<RunRecord>& runs) {
  const Bins& bins = quantity.bins;
  Plot plot;
  plot.width = kHistogramWidth;
  plot.height = kHistogramHeight;
  plot.x = {quantity.name, bins.aside() - 1.2 * bins.width,
            bins.edge(bins.count) + 0.4 * bins.width, quantity.tics, 3};
  plot.x.tics.insert(plot.x.tics.begin(), {bins.aside() + 0.5 * bins.width, "none"});
  double highest = 1;
  size_t entry = 0;
  for (const RunRecord& run : runs) {
    if (!run.certified()) continue;
    if (quantity.has(run)) {
      const std::vector<double> found = shares(run, quantity);
      highest = std::max(highest, std::ranges::max(found));
      plot.series.push_back(outline(found, bins, entry));
    }
    ++entry;
  }
  const double step = tic_step(highest, 5);
  const double top = step * std::ceil(highest / step);
  plot.y = {"share of images (%)", 0, top, round_tics(0, top, 6), 1};
  return plot;
}

/// Bars over `kBinsOfP` equal bins, stacked from the first kind on.
Plot stacked(const std::vector<std::vector<double>>& counts, double scale, std::string_view unit) {
  Plot plot;
  plot.width = kHistogramWidth;
  plot.height = kHistogramHeight;
  const double width = scale / kBinsOfP;
  std::vector<double> below(kBinsOfP);
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    Series series{Series::Kind::kBars, kind};
    series.width = width;
    for (int i = 0; i < kBinsOfP; ++i) {
      const double at = width * i, count = counts[kind][i];
      series.x.push_back(at);
      series.y.push_back(count);
      series.names.push_back(fmt::format("{0:.4g}{2} to {1:.4g}{2}", at, at + width, unit));
      series.path.emplace_back(at, below[i]);
      series.path.emplace_back(at, below[i] + count);
      below[i] += count;
    }
    plot.series.push_back(std::move(series));
  }
  const double highest = std::max(1.0, std::ranges::max(below));
  const double step = std::max(1.0, tic_step(highest, 5));
  const double top = step * std::ceil(highest / step);
  plot.x = {"", 0, scale, round_tics(0, scale, 5), 2};
  plot.y = {"", 0, top, {}, 0};
  for (double at = 0; at <= top; at += step) plot.y.tics.push_back({at, fmt::format("{:.6g}", at)});
  return plot;
}

int bin_of(double share) { return std::clamp(static_cast<int>(share * kBinsOfP), 0, kBinsOfP - 1); }

}  // namespace

Chart distribution_chart(const std::vector<RunRecord>& runs) {
  Chart chart{"distribution", "share of images"};
  chart.layout = Chart::Layout::kRow;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].certified()) chart.legend.push_back(curve_entry(runs[i].shown_name(), i));
  }
  if (chart.legend.empty()) throw Error("figure: no certificates to draw");
  if (std::ranges::any_of(runs, has_p)) {
    chart.plots.push_back(distribution_plot(probability_quantity(runs), runs));
  }
  chart.plots.push_back(distribution_plot(radius_quantity(runs, runs.front().norm), runs));
  chart.hints = {std::string("none: ") + kAside};
  return chart;
}

Chart confidence_chart(const std::vector<CertificateRow>& rows) {
  std::vector<std::vector<double>> counts(3, std::vector<double>(kBinsOfP));
  for (const CertificateRow& row : rows) {
    if (!row.estimated()) continue;
    const size_t kind = row.abstained() ? 2 : row.correct() ? 0 : 1;
    counts[kind][bin_of(row.certificate.p_lower)] += 1;
  }
  Chart chart{"confidence", "images by the lower bound on the top class's probability"};
  chart.legend = {
      {"correct", "var(--correct)"}, {"wrong", "var(--wrong)"}, {"abstained", "var(--abstained)"}};
  Plot plot = stacked(counts, 1, "");
  plot.x.label = "lower bound on the probability of the top class";
  plot.y.label = "images";
  chart.plots.push_back(std::move(plot));
  return chart;
}

Chart client_chart(const std::vector<ClientAccuracy>& clients) {
  std::vector<std::vector<double>> counts(1, std::vector<double>(kBinsOfP));
  for (const ClientAccuracy& client : clients) counts[0][bin_of(client.accuracy)] += 1;
  Chart chart{"clients", "clients by certified accuracy at radius 0"};
  chart.legend = {{"clients", "var(--correct)"}};
  Plot plot = stacked(counts, 100, "%");
  plot.x.label = "certified accuracy at radius 0 (%)";
  plot.y.label = "clients";
  chart.plots.push_back(std::move(plot));
  return chart;
}

}  // namespace fedsmooth
