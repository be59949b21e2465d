#include "fedsmooth/report/client_accuracy.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace {

struct ClassAccuracy {
  int64_t images = 0;
  int64_t certified = 0;

  double share() const { return static_cast<double>(certified) / static_cast<double>(images); }
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

}  // namespace

std::vector<ClientAccuracy> accuracy_by_client(const std::vector<CertificateRow>& rows,
                                               const std::vector<ClientRow>& clients, double r) {
  const std::vector<ClassAccuracy> by_class = accuracy_by_class(rows, class_count(clients), r);
  std::vector<ClientAccuracy> accuracies;
  for (const ClientRow& client : clients) {
    double images = 0, correct = 0;
    for (size_t c = 0; c < client.labels.size(); ++c) {
      if (by_class[c].images == 0) continue;
      const auto held = static_cast<double>(client.labels[c]);
      images += held;
      correct += held * by_class[c].share();
    }
    if (images > 0) accuracies.push_back({client.client, correct / images});
  }
  return accuracies;
}

ClientSummary summarize_clients(const std::vector<ClientAccuracy>& accuracies) {
  check(!accuracies.empty(), "summarize_clients: no clients");
  std::vector<double> sorted;
  for (const ClientAccuracy& client : accuracies) sorted.push_back(client.accuracy);
  std::sort(sorted.begin(), sorted.end());
  const auto clients = static_cast<double>(sorted.size());
  return {std::accumulate(sorted.begin(), sorted.end(), 0.0) / clients,
          (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2,
          *std::min_element(accuracies.begin(), accuracies.end(),
                            [](const auto& a, const auto& b) { return a.accuracy < b.accuracy; })};
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
