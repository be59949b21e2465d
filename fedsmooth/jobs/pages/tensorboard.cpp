#include "fedsmooth/jobs/pages/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/records/event_file.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// TensorBoard reads the files of a folder in the order of their names, which must begin like this.
constexpr const char* kRounds = "tensorboard/events.out.tfevents.0.rounds";
constexpr const char* kCertificates = "tensorboard/events.out.tfevents.1.certificates";

constexpr double kLargestRadius = 2.0;

double now() {
  using std::chrono::duration, std::chrono::system_clock;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

std::vector<Scalar> scalars(const RoundRow& row) {
  std::vector<Scalar> found = {{"train/loss", row.loss},
                               {"train/seconds", row.seconds},
                               {"train/dropped_clients", static_cast<double>(row.dropped)},
                               {"attack/perturbation_mean", row.perturbation_mean},
                               {"attack/perturbation_p95", row.perturbation_p95},
                               {"attack/probability_drop", row.probability_drop}};
  if (row.noisy_accuracy) found.push_back({"test/noisy_accuracy", *row.noisy_accuracy});
  if (row.gradient_cosine) found.push_back({"attack/gradient_cosine", *row.gradient_cosine});
  return found;
}

}  // namespace

void begin_round_events(const fs::path& run, const std::vector<RoundRow>& rows) {
  double time = now();
  for (const RoundRow& row : rows) time -= row.seconds;
  std::string bytes = format_event_version(time);
  for (const RoundRow& row : rows) {
    time += row.seconds;
    bytes += format_event(time, row.round, scalars(row));
  }
  write_file(run / kRounds, bytes);
}

void append_round_event(const fs::path& run, const RoundRow& row) {
  std::ofstream out(run / kRounds, std::ios::app | std::ios::binary);
  out << format_event(now(), row.round, scalars(row)) << std::flush;
  if (!out) throw Error("{}: cannot be written", (run / kRounds).string());
}

void write_certificate_events(const fs::path& run, int64_t round,
                              const std::vector<CertificateRow>& rows) {
  if (rows.empty()) return;
  std::vector<Scalar> found;
  for (const double radius : standard_radii(kLargestRadius, Norm::kL2)) {
    found.push_back({fmt::format("certified_accuracy/radius_{:.2f}", radius),
                     certified_accuracy(rows, radius)});
  }
  found.push_back({"certified_accuracy/average_radius", summarize(rows).average_certified_radius});
  write_file(run / kCertificates, format_event_version(now()) + format_event(now(), round, found));
}

}  // namespace fedsmooth::jobs
