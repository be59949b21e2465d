#include "fedsmooth/report/page/gallery_section.h"

#include <fmt/format.h>

#include <set>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/gallery.h"
#include "fedsmooth/report/page/picture.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/report/verdict.h"

namespace fedsmooth {
namespace {

constexpr size_t kMostSigmas = 5;
constexpr uint32_t kDrawsOfOne = 3;  // where all runs have the same sigma

std::string class_name(const RunRecord& run, int64_t label) {
  return label >= 0 && label < std::ssize(run.class_names)
             ? escape_html(run.class_names[static_cast<size_t>(label)])
             : fmt::format("class {}", label);
}

std::string card(const Array& image, std::string_view alt, std::string_view caption) {
  return fmt::format(
      "<figure class=\"card\"><img src=\"{}\" alt=\"{}\" width=\"96\" height=\"96\">"
      "<figcaption>{}</figcaption></figure>\n",
      picture_address(image), alt, caption);
}

/// A bar of all votes: for the answer, for the runner-up, for others.
std::string vote_bar(const Counts& counts, std::string_view kind) {
  const auto share = [&](int64_t votes) {
    return 100 * static_cast<double>(votes) / static_cast<double>(counts.n);
  };
  const double top = share(counts.top), second = share(counts.runner_up);
  return fmt::format(
      "<svg class=\"votes\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" "
      "aria-hidden=\"true\">"
      "<rect class=\"others\" width=\"100\" height=\"6\"/>"
      "<rect class=\"runner-up\" x=\"{0:.2f}\" width=\"{1:.2f}\" height=\"6\"/>"
      "<rect class=\"{2}\" width=\"{0:.2f}\" height=\"6\"/></svg>",
      top, second, kind);
}

std::string vote_lines(const RunRecord& run, const CertificateRow& row, std::string_view kind) {
  const Counts& counts = row.certificate.counts;
  if (row.published || counts.n == 0) return {};
  return fmt::format("{}<span>{} of {} votes for {}, {} for the next</span>",
                     vote_bar(counts, kind), grouped(counts.top), grouped(counts.n),
                     class_name(run, counts.selected), grouped(counts.runner_up));
}

std::string certificate_card(const RunRecord& run, const CertificateRow& row, const Array& image) {
  const std::string label = class_name(run, row.label);
  const std::string_view kind = row.abstained() ? "abstained" : row.correct() ? "correct" : "wrong";
  std::string answer;
  if (row.abstained()) {
    answer = "no answer";
  } else if (row.correct()) {
    answer = fmt::format("radius {}", format_radius(row.certificate.radius));
  } else {
    answer = fmt::format("answer {}, radius {}", class_name(run, row.certificate.predict),
                         format_radius(row.certificate.radius));
  }
  return card(image, fmt::format("test image {}, {}", row.index, label),
              fmt::format("<strong>{}</strong> <span>{}</span>{}<span>image {}</span>", label,
                          answer, vote_lines(run, row, kind), row.index));
}

std::string group_part(const RunRecord& run, const GalleryGroup& group) {
  std::string cards;
  for (const size_t i : group.rows) {
    const auto image = run.images.find(run.rows[i].index);
    if (image != run.images.end()) cards += certificate_card(run, run.rows[i], image->second);
  }
  return fmt::format("<h5>{} <small>{} of {}</small></h5>\n<div class=\"gallery\">\n{}</div>\n",
                     group.title, group.rows.size(), group.total, cards);
}

std::set<double> sigmas_of(const std::vector<RunRecord>& runs) {
  std::set<double> sigmas;
  for (const RunRecord& run : runs) {
    for (const CertificateRow& row : run.rows) {
      if (row.sigma > 0 && sigmas.size() < kMostSigmas) sigmas.insert(row.sigma);
    }
  }
  return sigmas;
}

/// The largest radius's image: one that is certified in spite of the noise shown.
const Array* example_image(const std::vector<RunRecord>& runs, int64_t& index) {
  for (const RunRecord& run : runs) {
    if (run.images.empty()) continue;
    index = run.rows[choose_gallery(run.rows).front().rows.front()].index;
    const auto image = run.images.find(index);
    if (image != run.images.end()) return &image->second;
  }
  return nullptr;
}

}  // namespace

std::string render_noise(const std::vector<RunRecord>& runs) {
  int64_t index = 0;
  const Array* image = example_image(runs, index);
  if (image == nullptr) return {};
  const std::set<double> sigmas = sigmas_of(runs);
  std::string cards = card(*image, "without noise", "without noise");
  for (const double sigma : sigmas) {
    const std::string name = fmt::format("σ = {:.4g}", sigma);
    for (uint32_t draw = 0; draw < (sigmas.size() == 1 ? kDrawsOfOne : 1); ++draw) {
      cards += card(with_noise(*image, sigma, draw), name, name);
    }
  }
  return fmt::format(
      "<div class=\"gallery\">\n{}</div>\n"
      "<p class=\"note\">Test image {}, and what f gets to see of it: each vote is f’s answer to "
      "another such draw. The screen cuts values beyond black and white; f sees them.</p>\n",
      cards, index);
}

std::string render_gallery(const RunRecord& run) {
  if (!run.certified()) return {};
  if (run.images.empty()) {
    return run.no_images.empty()
               ? std::string()
               : fmt::format("<p class=\"note\">No test images are shown: {}.</p>\n",
                             escape_html(run.no_images));
  }
  std::string body = "<h4>Test images</h4>\n";
  for (const GalleryGroup& group : choose_gallery(run.rows)) body += group_part(run, group);
  return body;
}

}  // namespace fedsmooth
