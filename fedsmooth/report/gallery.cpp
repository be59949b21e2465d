#include "fedsmooth/report/gallery.h"

#include <algorithm>
#include <functional>

namespace fedsmooth {
namespace {

using Row = CertificateRow;

GalleryGroup choose(const std::vector<Row>& rows, size_t most, const std::string& title,
                    const std::function<bool(const Row&)>& belongs,
                    const std::function<double(const Row&)>& first) {
  GalleryGroup group{title, {}, 0};
  for (size_t i = 0; i < rows.size(); ++i) {
    if (belongs(rows[i])) group.rows.push_back(i);
  }
  group.total = std::ssize(group.rows);
  std::ranges::stable_sort(group.rows, std::greater(), [&](size_t i) { return first(rows[i]); });
  group.rows.resize(std::min(group.rows.size(), most));
  return group;
}

double radius(const Row& row) { return row.certificate.radius; }

/// The share of votes that did not go to the class that had been selected.
double doubt(const Row& row) {
  const Counts& counts = row.certificate.counts;
  return counts.n == 0 ? 0 : 1 - static_cast<double>(counts.top) / static_cast<double>(counts.n);
}

}  // namespace

std::vector<GalleryGroup> choose_gallery(const std::vector<Row>& rows, size_t most) {
  std::vector<GalleryGroup> groups = {
      choose(
          rows, most, "Largest radii", [](const Row& row) { return row.correct(); }, radius),
      choose(
          rows, most, "Abstentions",
          [](const Row& row) { return row.abstained() && row.estimated(); }, doubt),
      choose(
          rows, most, "Wrong but certified",
          [](const Row& row) { return !row.abstained() && !row.correct() && row.estimated(); },
          radius)};
  std::erase_if(groups, [](const GalleryGroup& group) { return group.rows.empty(); });
  return groups;
}

}  // namespace fedsmooth
