#include "fedsmooth/jobs/verify.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/jobs/certification/plausibility.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/smoothing/certify_steps.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Rows = std::vector<CertificateRow>;

uint64_t choose_seed(const std::optional<uint64_t>& given, const Rows& rows) {
  const uint64_t seed = given.value_or(random_seed());
  for (const CertificateRow& row : rows) {
    if (row.seed == seed)
      throw Error("--seed={}: is the table's own; its draws would be the same", seed);
  }
  return seed;
}

Subject find_subject(const VerifyArguments& a, const fs::path& table, const json& sidecar,
                     const CertificateIdentity& identity) {
  if (!a.model.empty()) return {a.model, a.with};
  if (!a.with.empty()) throw Error("--with: give --model too, one of the members");
  if (identity.members && !identity.groups) return stated_members(table, sidecar);
  const fs::path folder = fs::absolute(table).parent_path();
  if (fs::exists(folder / "experiment.toml") && fs::exists(folder / "DONE")) {
    return {folder.string(), {}};
  }
  const std::string name = sidecar_path(table).string();
  const fs::path stated = find_string(sidecar, "model", name).value_or("");
  if (!stated.empty() && fs::exists(stated)) return {stated.string(), {}};
  throw Error(
      "{}: its model {} is not here; give --model, or verify a table of a function in Python, by "
      "fs.verify(table, g, test_set)",
      table.string(), stated.string());
}

// Returns the options by which the table was made, then those of the user, which win.
Overrides options_of(const CertificateIdentity& identity,
                     const std::optional<std::string>& data_root, const Overrides& given) {
  Overrides options;
  const auto take = [&](const std::string& key, const std::optional<std::string>& value) {
    if (value) options.emplace_back(key, *value);
  };
  take("data.name", identity.data);
  take("data.root", data_root);
  take("data.held_out", std::to_string(identity.held_out.value_or(0)));
  take("certify.noise", std::string(option_of_law(drawn_today(identity.law()))));
  if (identity.sigma) take("certify.sigma", fmt::format("{}", *identity.sigma));
  options.insert(options.end(), given.begin(), given.end());
  return options;
}

// The images for which new votes are drawn, and the sampler that draws them.
struct Redraw {
  Dataset data;
  std::optional<std::vector<int64_t>> indices;  // ascending, of each image in `data`; none: 0, 1...
  int64_t classes = 0;
  double sigma = 0.0;
  std::shared_ptr<Sampler> sampler;

  // Returns the row of `data` that has the image; none if there is none.
  std::optional<int64_t> place_of(int64_t index) const {
    if (!indices) {
      return index < data.size() ? std::optional(index) : std::nullopt;
    }
    const auto found = std::lower_bound(indices->begin(), indices->end(), index);
    if (found == indices->end() || *found != index) return std::nullopt;
    return found - indices->begin();
  }
};

void check_rows(const Rows& rows, const Redraw& redraw, const fs::path& table) {
  for (const CertificateRow& row : rows) {
    const std::optional<int64_t> place = redraw.place_of(row.index);
    if (!place || redraw.data.label(*place) != row.label) {
      throw Error("{}: image {} with label {} is not in its data", table.string(), row.index,
                  row.label);
    }
    const int64_t selected = row.certificate.counts.selected;
    if (selected < 0 || selected >= redraw.classes) {
      throw Error("{}: image {} is answered by class {}, of {}", table.string(), row.index,
                  selected, redraw.classes);
    }
    if (row.sigma != redraw.sigma || &drawn_today(row.law()) != &redraw.sampler->law()) {
      throw Error("{}: was made with sigma {} and {} noise; leave them as they are", table.string(),
                  row.sigma, row.law().name);
    }
  }
}

ClassifierIdentity stated_classifier(const CertificateIdentity& identity) {
  return {identity, identity.law()};
}

// Throws an Error if the classifier here is not the table's. On another machine logits may differ
// in their last bits, which is only noted.
void check_classifier(const CertificateIdentity& identity, const ClassifierIdentity& here,
                      const fs::path& table, const Context& context) {
  if (!check_same_classifier(stated_classifier(identity), here, table)) return;
  context.note(fmt::format("drawn anew by {}; the table's votes were counted by {}",
                           here.subject.base.value_or(""), identity.base.value_or("")));
}

void check_classes(const Redraw& redraw, const CertificateIdentity& identity,
                   const fs::path& table) {
  if (identity.classes.value_or(redraw.classes) == redraw.classes) return;
  throw Error("{}: is about a classifier of {} classes; this one has {}", table.string(),
              *identity.classes, redraw.classes);
}

Redraw load_redraw(const VerifyArguments& a, const fs::path& table, const Overrides& given,
                   const Context& context) {
  const json sidecar = read_sidecar(table);
  const CertificateIdentity identity = read_identity(table);
  const Subject subject = find_subject(a, table, sidecar, identity);
  const auto data_root = find_string(sidecar, "data_root", sidecar_path(table).string());
  const Overrides options = options_of(identity, data_root, given);
  Redraw redraw;
  redraw.data = load_dataset(data_of_model(subject.path, options), Split::kTest);
  check_same_sha256(identity.data_sha256, digest(redraw.data), "data set", table);
  const Shape shape = image_shape(redraw.data);
  const ModelUnderTest model =
      load_under_test(subject, options, &redraw.data, shape, context.device);
  check_is_about(identity, model, table);
  check_same_sha256(identity.model_sha256, model.sha256, "model", table);
  redraw.classes = model.f.classes;
  check_classes(redraw, identity, table);
  redraw.sigma = model.sigma;
  redraw.sampler = make_sampler(model.f, *model.experiment.certify.noise, thread_count(context),
                                context.stopped);
  check_classifier(identity, identify_classifier(model, redraw.sampler->check(redraw.data.shape())),
                   table, context);
  return redraw;
}

// A row with gaps is tested against every number of malicious clients: its p-value is the smallest
// one, multiplied by the number of tests (Bonferroni).
double p_value_of(const CertificateRow& row, const VotesAndGaps& found, int64_t n) {
  const Counts& stored = row.certificate.counts;
  const auto top_against = [&](int64_t malicious) {
    return counts_for(stored.selected, found, n, malicious).top;
  };
  if (stored.gaps.empty()) return row_p_value(row, top_against(row.malicious.value_or(0)), n);
  const int64_t most = groups_of(stored.gaps) / 2;
  double smallest = 1;
  for (int64_t m = 0; m <= most; ++m) {
    smallest = std::min(smallest, row_p_value(against(row, m), top_against(m), n));
  }
  return std::min(1.0, static_cast<double>(most + 1) * smallest);
}

// Draws new votes for the selected class of each row.
std::vector<RedrawnImage> draw_anew(const Rows& rows, int64_t votes, uint64_t seed, Redraw& redraw,
                                    const Context& context) {
  const auto progress = begin_progress(context, "verify", 0, std::ssize(rows));
  std::vector<RedrawnImage> images;
  for (const CertificateRow& row : rows) {
    const Counts& stored = row.certificate.counts;
    const int64_t n = votes > 0 ? votes : stored.n;
    const Stream stream{make_key(seed, Purpose::kEstimation), static_cast<uint32_t>(row.index)};
    const Array image = redraw.data.image(redraw.place_of(row.index).value());
    const VoteRequest request{image, row.sigma, n, stream};
    const VotesAndGaps found = count_for(*redraw.sampler, {request}, {stored.selected})[0];
    const int64_t top = counts_for(stored.selected, found, n, row.malicious.value_or(0)).top;
    images.push_back(
        {row.index, stored.selected, stored.top, stored.n, top, n, p_value_of(row, found, n)});
    progress->step(fmt::format("p {:.3g}", images.back().p_value));
  }
  redraw.sampler->probe();
  return images;
}

// Throws an Error if digests tell that classifier or images are not the table's.
void check_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                   const Redraw& redraw, const fs::path& table, const Context& context) {
  const CertificateIdentity identity = read_identity(table);
  check_same_sha256(identity.data_sha256,
                    images.sha256.empty() ? digest(redraw.data) : images.sha256, "data set", table);
  ClassifierIdentity here{{}, redraw.sampler->law()};
  here.subject.sigma = redraw.sigma;
  here.subject.fingerprint = redraw.sampler->check(redraw.data.shape());
  here.subject.base = redraw.sampler->description();
  if (!classifier.sha256.empty()) {
    here.subject.model_sha256 = classifier.sha256;
    return check_classifier(identity, here, table, context);
  }
  const ClassifierDifference found = compare_classifiers(stated_classifier(identity), here);
  if (identity.fingerprint && !found.logits) return;
  if (!found.arithmetic) {
    throw Error("{}: is about another model: {} gives other logits, with the same arithmetic ({})",
                table.string(), classifier.name, *here.subject.base);
  }
  context.warn(
      fmt::format("{}: its votes were counted by {}, these by {}: whether the model is the same "
                  "cannot be told",
                  table.string(), identity.base.value_or(""), *here.subject.base));
}

Rows read_rows(const fs::path& table) {
  Rows rows = read_certificates(table);
  if (rows.empty()) throw Error("{}: has no rows yet", table.string());
  return rows;
}

void check_amounts(int64_t images, int64_t n) {
  if (images < 0) throw Error("--images={}: must not be negative", images);
  if (n < 0 || n > kMaxVotes) throw Error("--n={}: must be between 0 and 2^32", n);
}

// Checks all rows against data and classifier, draws new votes for the chosen ones (at least one)
// and adds the verdict to `found`.
void redraw_rows(const Rows& rows, const Rows& chosen, int64_t n, Redraw& redraw,
                 const Context& context, Verification& found) {
  check_rows(rows, redraw, found.table);
  found.images = draw_anew(chosen, n, found.seed, redraw, context);
  std::vector<double> p;
  for (const RedrawnImage& image : found.images) p.push_back(image.p_value);
  const CertificateRow& row = chosen.front();
  found.p_value = table_p_value(p, row.rule == VoteRule::kRadii && !row.shared);
}

}  // namespace

Verification verify(const VerifyArguments& a, const Overrides& overrides, const Context& context) {
  check_context(context);
  check_amounts(a.images, a.n);
  Verification found{find_table(a.table)};
  const Rows rows = read_rows(found.table);
  found.rows = std::ssize(rows);
  found.seed = choose_seed(given_seed(overrides), rows);
  const Rows chosen = choose_rows(rows, a.images, found.seed);
  if (chosen.empty()) return found;
  Redraw redraw = load_redraw(a, found.table, overrides, context);
  redraw_rows(rows, chosen, a.n, redraw, context, found);
  return found;
}

Verification verify_in_hand(const VerifyInHandArguments& a, const ClassifierInHand& classifier,
                            const ImagesInHand& images, const Context& context) {
  check_context(context);
  check_amounts(a.images, a.n);
  Verification found{find_table(a.table)};
  const Rows rows = read_rows(found.table);
  found.rows = std::ssize(rows);
  found.seed = choose_seed(a.seed, rows);
  Redraw redraw{images.images, images.indices, images.images.classes(), a.sigma,
                classifier.sampler};
  check_in_hand(classifier, images, redraw, found.table, context);
  const Rows chosen = choose_rows(rows, a.images, found.seed);
  if (chosen.empty()) {
    check_rows(rows, redraw, found.table);
    return found;
  }
  redraw_rows(rows, chosen, a.n, redraw, context, found);
  return found;
}

}  // namespace fedsmooth::jobs
