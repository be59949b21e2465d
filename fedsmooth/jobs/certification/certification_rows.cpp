#include "fedsmooth/jobs/certification/certification_rows.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/records/certificate_columns.h"

namespace fedsmooth::jobs {
namespace {

using Clock = std::chrono::steady_clock;

LabelledImage image_of(const CertificationJob& job, size_t i) {
  const int64_t row = job.row(i);
  return {job.data.image(row), static_cast<uint32_t>(job.images[i]), job.data.label(row)};
}

std::vector<CertificateRow> rows_of(const CertificationJob& job,
                                    const std::vector<LabelledImage>& images,
                                    const std::vector<Certificate>& found,
                                    Clock::time_point start) {
  const std::chrono::duration<double> spent = Clock::now() - start;
  CertificateRow row = row_of(job.identity);
  row.seconds = spent.count() / static_cast<double>(images.size());
  std::vector<CertificateRow> rows;
  for (size_t i = 0; i < images.size(); ++i) {
    row.index = images[i].index;
    row.label = images[i].label;
    row.certificate = found[i];
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::vector<CertificateRow> certify_wave(const CertificationJob& job, int64_t begin, int64_t end) {
  const auto start = Clock::now();
  const Experiment& e = job.subject.experiment;
  std::vector<LabelledImage> images;
  for (int64_t i = begin; i < end; ++i) images.push_back(image_of(job, i));
  return rows_of(job, images,
                 certify_all(*job.sampler, images, job.subject.sigma, e.certify, *job.identity.seed,
                             job.budget.get()),
                 start);
}

std::vector<CertificateRow> undecided_rows(const std::vector<CertificateRow>& rows, int64_t n) {
  std::vector<CertificateRow> undecided;
  std::optional<RadiiTest> test;  // one for all rows, whose radii and levels are the same
  for (const CertificateRow& row : rows) {
    if (row.rule != VoteRule::kRadii || !row.estimated() || row.cap >= n) continue;
    if (!test) test.emplace(row.radii, row.sigma, row.alpha, row.beta, row.law());
    const Certificate& c = row.certificate;
    std::vector<Latch> latches = c.latches;
    if (!test->look(c.counts.top, c.counts.n, latches)) undecided.push_back(row);
  }
  std::stable_sort(undecided.begin(), undecided.end(), [](const auto& a, const auto& b) {
    return a.certificate.counts.n < b.certificate.counts.n;
  });
  return undecided;
}

std::vector<CertificateRow> continue_wave(const CertificationJob& job,
                                          const std::vector<CertificateRow>& rows) {
  const auto start = Clock::now();
  const Experiment& e = job.subject.experiment;
  std::vector<LabelledImage> images;
  std::vector<Certificate> earlier;
  for (const CertificateRow& row : rows) {
    const auto at = std::lower_bound(job.images.begin(), job.images.end(), row.index);
    images.push_back(image_of(job, at - job.images.begin()));
    earlier.push_back(row.certificate);
  }
  std::vector<CertificateRow> continued =
      rows_of(job, images,
              continue_all(*job.sampler, images, earlier, job.subject.sigma, e.certify,
                           *job.identity.seed, *job.budget),
              start);
  for (size_t i = 0; i < rows.size(); ++i) continued[i].seconds += rows[i].seconds;
  return continued;
}

}  // namespace fedsmooth::jobs
