#include "fedsmooth/report/client_accuracy.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fedsmooth/base/draws.h"

namespace fedsmooth {
namespace {

struct ClassAccuracy {
  int64_t images = 0;
  int64_t certified = 0;

  double share() const { return static_cast<double>(certified) / static_cast<double>(images); }
  // Standard error of the share. It is taken at the centre of Wilson's interval at three standard
  // errors: at the share itself it would be 0 where no image is certified, and too small where the
  // share came out too low.
  double error() const {
    const auto n = static_cast<double>(images);
    const double centre = (static_cast<double>(certified) + 4.5) / (n + 9);
    return std::sqrt(centre * (1 - centre) / n);
  }
};

struct ClientEstimate {
  int64_t client = 0;
  double accuracy = 0.0;
  double error = 0.0;         // standard
  std::vector<double> parts;  // of each class in the error; their squares add up to 1
};

std::vector<ClassAccuracy> accuracy_by_class(const std::vector<CertificateRow>& rows,
                                             size_t classes, double r) {
  std::vector<ClassAccuracy> by_class(classes);
  for (const CertificateRow& row : rows) {
    const auto label = static_cast<size_t>(row.label);
    if (label >= classes) continue;  // no client holds it
    by_class[label].images += 1;
    by_class[label].certified += row.correct() && row.certificate.radius >= r;
  }
  return by_class;
}

size_t class_count(const std::vector<ClientRow>& clients) {
  size_t classes = 0;
  for (const ClientRow& client : clients) classes = std::max(classes, client.labels.size());
  return classes;
}

// Without clients that hold no class with certified images.
std::vector<ClientEstimate> estimate_clients(const std::vector<CertificateRow>& rows,
                                             const std::vector<ClientRow>& clients, double r) {
  const std::vector<ClassAccuracy> by_class = accuracy_by_class(rows, class_count(clients), r);
  std::vector<ClientEstimate> estimates;
  for (const ClientRow& client : clients) {
    ClientEstimate e{client.client, 0, 0, std::vector<double>(by_class.size())};
    double held = 0, correct = 0, squares = 0;
    for (size_t c = 0; c < client.labels.size(); ++c) {
      if (by_class[c].images == 0) continue;
      const auto images = static_cast<double>(client.labels[c]);
      held += images;
      correct += images * by_class[c].share();
      e.parts[c] = images * by_class[c].error();
      squares += e.parts[c] * e.parts[c];
    }
    if (held == 0) continue;
    e.accuracy = correct / held;
    e.error = std::sqrt(squares) / held;
    for (double& part : e.parts) part /= std::sqrt(squares);
    estimates.push_back(std::move(e));
  }
  return estimates;
}

constexpr size_t kDraws = 2000;  // by which the factor is known to 0.05
constexpr double kConfidence = 0.95;

// How many standard errors the estimates are off at most, all at once, with probability
// kConfidence: the quantile of max_k |sum_c parts_k,c z_c|, z normal.
double factor_for_all(const std::vector<ClientEstimate>& estimates) {
  const size_t classes = estimates.front().parts.size();
  std::vector<std::vector<float>> z(classes, std::vector<float>(kDraws));
  Draws draws({Key{}});  // any key will do: they decide nothing but a quantile
  for (auto& of_class : z) {
    for (float& value : of_class) value = static_cast<float>(draws.normal());
  }
  std::vector<float> largest(kDraws), off(kDraws);
  for (const ClientEstimate& e : estimates) {
    std::fill(off.begin(), off.end(), 0.0f);
    for (size_t c = 0; c < classes; ++c) {
      if (e.parts[c] == 0) continue;
      const auto part = static_cast<float>(e.parts[c]);
      for (size_t d = 0; d < kDraws; ++d) off[d] += part * z[c][d];
    }
    for (size_t d = 0; d < kDraws; ++d) largest[d] = std::max(largest[d], std::abs(off[d]));
  }
  const auto quantile = largest.begin() + static_cast<int64_t>(kConfidence * kDraws);
  std::nth_element(largest.begin(), quantile, largest.end());
  return *quantile;
}

}  // namespace

std::vector<ClientAccuracy> accuracy_by_client(const std::vector<CertificateRow>& rows,
                                               const std::vector<ClientRow>& clients, double r) {
  std::vector<ClientAccuracy> accuracies;
  for (const ClientEstimate& e : estimate_clients(rows, clients, r)) {
    accuracies.push_back({e.client, e.accuracy});
  }
  return accuracies;
}

std::optional<ClientSummary> summarize_clients(const std::vector<CertificateRow>& rows,
                                               const std::vector<ClientRow>& clients, double r) {
  std::vector<ClientEstimate> sorted = estimate_clients(rows, clients, r);
  if (sorted.empty()) return {};
  std::ranges::stable_sort(sorted, {}, &ClientEstimate::accuracy);
  ClientSummary summary{.clients = std::ssize(sorted),
                        .worst = {sorted[0].client, sorted[0].accuracy},
                        .worst_low = 1,
                        .worst_high = 1};
  summary.median =
      (sorted[(sorted.size() - 1) / 2].accuracy + sorted[sorted.size() / 2].accuracy) / 2;
  const double factor = factor_for_all(sorted);
  for (const ClientEstimate& e : sorted) {
    summary.mean += e.accuracy / static_cast<double>(summary.clients);
    const double low = std::max(0.0, e.accuracy - factor * e.error);
    summary.worst_low = std::min(summary.worst_low, low);
    summary.worst_high = std::min(summary.worst_high, e.accuracy + factor * e.error);
  }
  return summary;
}

std::vector<size_t> classes_left_out(const std::vector<CertificateRow>& rows,
                                     const std::vector<ClientRow>& clients) {
  const std::vector<ClassAccuracy> by_class = accuracy_by_class(rows, class_count(clients), 0);
  std::set<size_t> left_out;
  for (const ClientRow& client : clients) {
    for (size_t c = 0; c < client.labels.size(); ++c) {
      if (client.labels[c] > 0 && by_class[c].images == 0) left_out.insert(c);
    }
  }
  return {left_out.begin(), left_out.end()};
}

}  // namespace fedsmooth
