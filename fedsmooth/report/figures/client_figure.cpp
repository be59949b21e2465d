#include "fedsmooth/report/figures/client_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/figures/gnuplot.h"

namespace fedsmooth {
namespace {

constexpr size_t kMaxBars = 50;
constexpr size_t kMaxTics = 10;
constexpr size_t kMaxLegend = 20;  // entries that fit beside the bars
constexpr size_t kLongestClass = 16;

/// One client out of each of kMaxBars equal parts. Its place within the part wanders: clients are
/// often numbered by their major class, of which equal steps might meet a single one.
std::vector<ClientRow> choose_clients(const std::vector<ClientRow>& clients) {
  if (clients.size() <= kMaxBars) return clients;
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double part = static_cast<double>(clients.size()) / kMaxBars;
  std::vector<ClientRow> chosen;
  for (size_t i = 0; i < kMaxBars; ++i) {
    const auto place = static_cast<double>(i);
    const double wander = place * kGoldenRatio - std::floor(place * kGoldenRatio);
    chosen.push_back(clients[static_cast<size_t>((place + wander) * part)]);
  }
  return chosen;
}

/// A line per client: percent of each class.
std::string format_shares(const std::vector<ClientRow>& clients) {
  std::string lines;
  for (const ClientRow& client : clients) {
    const auto images = static_cast<double>(std::max<int64_t>(client.images(), 1));
    for (const int64_t label : client.labels) {
      lines += fmt::format("{:.4g} ", 100 * static_cast<double>(label) / images);
    }
    lines += "\n";
  }
  return lines;
}

std::string format_tics(const std::vector<ClientRow>& clients) {
  const size_t step = (clients.size() + kMaxTics - 1) / kMaxTics;
  std::string tics;
  for (size_t i = 0; i < clients.size(); i += step) {
    tics += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", clients[i].client, i);
  }
  return tics;
}

/// Hues once around the circle; every other one darker, so that neighbours differ.
std::string class_colour(size_t label, size_t classes) {
  return fmt::format("hsv2rgb({:.4f}, {}, {})",
                     static_cast<double>(label) / static_cast<double>(classes),
                     label % 2 == 0 ? 0.55 : 0.7, label % 2 == 0 ? 0.9 : 0.65);
}

std::string class_title(const std::vector<std::string>& names, size_t label) {
  const std::string name = label < names.size() ? names[label] : fmt::format("{}", label);
  return quote_for_gnuplot(shorten(name, kLongestClass));
}

Figure make_figure(const std::vector<ClientRow>& clients, const std::vector<std::string>& names) {
  const size_t classes = clients.front().labels.size();
  std::string script = fmt::format(
      "{}set style data histograms\n"
      "set style histogram rowstacked\n"
      "set style fill solid 1 noborder\n"
      "set boxwidth 0.86\n"
      "set key {}\n"
      "set xlabel 'client' offset 0,0.3\n"
      "set ylabel 'share of images (%)'\n"
      "set xtics ({})\n"
      "set xrange [-0.6:{}]\n"
      "set yrange [0:100]\n"
      "set grid noxtics\n"
      "$shares << END\n{}END\n",
      axes_style(),
      classes > kMaxLegend ? "off" : "outside right center Left reverse invert samplen 1",
      format_tics(clients), static_cast<double>(clients.size()) - 0.4, format_shares(clients));
  for (size_t c = 0; c < classes; ++c) {
    script += fmt::format("{} $shares using {} linecolor rgb {} title {}", c == 0 ? "plot" : ",",
                          c + 1, class_colour(c, classes), class_title(names, c));
  }
  return {script + "\n", 400};
}

}  // namespace

void draw_clients(const std::vector<ClientRow>& clients,
                  const std::vector<std::string>& class_names, const std::filesystem::path& out) {
  if (clients.empty()) throw Error("figure: no clients to draw");
  for (const ClientRow& client : clients) {
    if (client.labels.empty() || client.labels.size() != clients.front().labels.size()) {
      throw Error("figure: client {} has {} classes, the first one {}", client.client,
                  client.labels.size(), clients.front().labels.size());
    }
  }
  write_figure(make_figure(choose_clients(clients), class_names), out);
}

}  // namespace fedsmooth
