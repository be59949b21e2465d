#include "fedsmooth/report/figures/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fedsmooth {
namespace {

constexpr int kBins = 20;
constexpr double kLeft = 36, kTop = 8, kBarWidth = 22, kHeight = 120;
constexpr double kBottom = kTop + kHeight;

using Bin = std::vector<int64_t>;  // how many of each kind

struct Histogram {
  std::string what;
  std::vector<std::string> kinds;  // from below; also the names of their CSS classes
  std::vector<Bin> bins;

  Histogram(std::string title, std::vector<std::string> names)
      : what(std::move(title)), kinds(std::move(names)), bins(kBins, Bin(kinds.size())) {}

  void add(double value, size_t kind) {
    const auto bin = static_cast<int>(value * kBins);
    bins[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))][kind] += 1;
  }
};

std::string draw_bar(const Bin& bin, const std::vector<std::string>& kinds, double x, double unit) {
  std::string bar;
  double y = kBottom;
  for (size_t i = 0; i < bin.size(); ++i) {
    const double height = unit * static_cast<double>(bin[i]);
    y -= height;
    if (bin[i] == 0) continue;
    bar += fmt::format(
        "<rect class=\"{0}\" x=\"{1:.1f}\" y=\"{2:.1f}\" width=\"{3}\" height=\"{4:.1f}\">"
        "<title>{5} {0}</title></rect>\n",
        kinds[i], x, y, kBarWidth - 2, height, bin[i]);
  }
  return bar;
}

std::string draw_axis(int64_t highest) {
  std::string axis = fmt::format(
      "<path class=\"axis\" d=\"M{0} {1}H{2}M{0} {3}h-4\"/>\n"
      "<text x=\"{4}\" y=\"{5}\" text-anchor=\"end\">{6}</text>\n",
      kLeft, kBottom, kLeft + kBins * kBarWidth, kTop, kLeft - 6, kTop + 8, highest);
  for (const double tick : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    axis += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                        kLeft + tick * kBins * kBarWidth, kBottom + 16, tick);
  }
  return axis;
}

std::string draw(const Histogram& histogram) {
  int64_t highest = 1;
  for (const Bin& bin : histogram.bins) {
    highest = std::max(highest, std::accumulate(bin.begin(), bin.end(), int64_t{0}));
  }
  std::string svg = fmt::format(
      "<svg class=\"histogram\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
      kLeft + kBins * kBarWidth + 16, kBottom + 22, histogram.what);
  for (int i = 0; i < kBins; ++i) {
    svg += draw_bar(histogram.bins[static_cast<size_t>(i)], histogram.kinds,
                    kLeft + i * kBarWidth + 1, kHeight / static_cast<double>(highest));
  }
  return svg + draw_axis(highest) + "</svg>\n";
}

}  // namespace

std::string p_lower_histogram(const std::vector<CertificateRow>& rows) {
  Histogram histogram("distribution of p_lower", {"correct", "wrong", "abstained"});
  for (const CertificateRow& row : rows) {
    if (!row.estimated()) continue;
    histogram.add(row.certificate.p_lower, row.abstained() ? 2 : row.correct() ? 0 : 1);
  }
  return draw(histogram);
}

std::string client_histogram(const std::vector<ClientAccuracy>& clients) {
  Histogram histogram("clients by accuracy", {"clients"});
  for (const ClientAccuracy& client : clients) histogram.add(client.accuracy, 0);
  return draw(histogram);
}

}  // namespace fedsmooth
