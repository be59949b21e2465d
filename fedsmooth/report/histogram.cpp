#include "fedsmooth/report/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fedsmooth {
namespace {

constexpr int kBins = 20;
constexpr std::array kOutcomes = {"correct", "wrong", "abstained"};
constexpr double kLeft = 36, kTop = 8, kBarWidth = 22, kHeight = 120;
constexpr double kBottom = kTop + kHeight;

using Bin = std::array<int64_t, kOutcomes.size()>;

size_t outcome(const CertificateRow& row) { return row.abstained() ? 2 : row.correct() ? 0 : 1; }

std::array<Bin, kBins> count_bins(const std::vector<CertificateRow>& rows) {
  std::array<Bin, kBins> bins{};
  for (const CertificateRow& row : rows) {
    const auto bin = static_cast<int>(row.certificate.p_lower * kBins);
    bins[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))][outcome(row)] += 1;
  }
  return bins;
}

int64_t total(const Bin& bin) { return bin[0] + bin[1] + bin[2]; }

std::string draw_bar(const Bin& bin, double x, double unit) {
  std::string bar;
  double y = kBottom;
  for (size_t i = 0; i < bin.size(); ++i) {
    const double height = unit * static_cast<double>(bin[i]);
    y -= height;
    if (bin[i] == 0) continue;
    bar += fmt::format(
        "<rect class=\"{0}\" x=\"{1:.1f}\" y=\"{2:.1f}\" width=\"{3}\" height=\"{4:.1f}\">"
        "<title>{5} {0}</title></rect>\n",
        kOutcomes[i], x, y, kBarWidth - 2, height, bin[i]);
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

}  // namespace

std::string p_lower_histogram(const std::vector<CertificateRow>& rows) {
  const std::array<Bin, kBins> bins = count_bins(rows);
  int64_t highest = 1;
  for (const Bin& bin : bins) highest = std::max(highest, total(bin));
  std::string svg = fmt::format(
      "<svg class=\"histogram\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"distribution of p_lower\">\n",
      kLeft + kBins * kBarWidth + 16, kBottom + 22);
  for (int i = 0; i < kBins; ++i) {
    svg += draw_bar(bins[static_cast<size_t>(i)], kLeft + i * kBarWidth + 1,
                    kHeight / static_cast<double>(highest));
  }
  return svg + draw_axis(highest) + "</svg>\n";
}

}  // namespace fedsmooth
