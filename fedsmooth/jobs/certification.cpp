#include "fedsmooth/jobs/certification.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/distributed/hand_out.h"
#include "fedsmooth/jobs/certification_plan.h"
#include "fedsmooth/jobs/model_under_test.h"
#include "fedsmooth/jobs/rank_jobs.h"
#include "fedsmooth/jobs/tensorboard.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// An earlier part of the same certification: its rows must be the first of the planned images.
void check_is_beginning(const std::vector<CertificateRow>& rows, const CertificationJob& plan,
                        const fs::path& table) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= plan.images.size() || rows[i].index != plan.images[i] ||
        rows[i].label != plan.data.label(plan.row(i))) {
      throw Error("{}: row {} is image {}, which this certification does not have there",
                  table.string(), i + 1, rows[i].index);
    }
  }
}

CertificationJob load_together(const CertifyArguments& a, const Overrides& overrides,
                               const Context& context) {
  CertificationJob plan;
  agree(ranks_of(context), [&] { return (plan = load_plan(a, overrides, context)).identity; });
  return plan;
}

// A wave of images is an item of the work: number i has those from at_once i on.
struct Items {
  explicit Items(const CertificationJob& plan)
      : images(static_cast<int64_t>(plan.images.size())),
        at_once(images_per_wave(*plan.sampler, plan.subject.experiment.certify)) {
    // Large waves are for one process: several ranks must all get some.
    const int64_t share = (images + 4 * plan.ranks - 1) / (4 * plan.ranks);
    if (plan.ranks > 1) at_once = std::min(at_once, std::max<int64_t>(16, share));
  }

  int64_t images, at_once;

  int64_t count() const { return (images + at_once - 1) / at_once; }
  int64_t begin(int64_t i) const { return i * at_once; }
  int64_t end(int64_t i) const { return std::min(images, (i + 1) * at_once); }
};

std::vector<CertificateRow> certify_item(const CertificationJob& plan, int64_t item) {
  const auto start = std::chrono::steady_clock::now();
  const Experiment& e = plan.subject.experiment;
  const double sigma = plan.subject.sigma;
  const Sampler& sampler = *plan.sampler;
  const Items items(plan);
  std::vector<LabelledImage> some;
  for (int64_t i = items.begin(item); i < items.end(item); ++i) {
    const int64_t row = plan.row(i);
    some.push_back(
        {plan.data.image(row), static_cast<uint32_t>(plan.images[i]), plan.data.label(row)});
  }
  const uint64_t seed = certified_seed(e);
  const std::vector<Certificate> found =
      certify_all(*plan.sampler, some, sigma, e.certify, seed, plan.budget.get());
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  const double each = spent.count() / static_cast<double>(some.size());
  CertificateRow row;
  row.seconds = each;
  row.n0 = e.certify.selection_votes();
  row.alpha = e.certify.alpha;
  row.sigma = sigma;
  row.seed = seed;
  row.base = sampler.description();
  row.noise = sampler.noise_kind();
  row.shared = e.certify.noise_bank;
  row.rule = e.certify.rule();
  row.cap = e.certify.n;
  if (row.rule == VoteRule::kRadii) {
    row.beta = e.certify.beta;
    row.radii = ladder_of(e.certify.radii);
  }
  std::vector<CertificateRow> rows;
  for (size_t i = 0; i < some.size(); ++i) {
    row.index = some[i].index;
    row.label = some[i].label;
    row.certificate = found[i];
    rows.push_back(row);
  }
  return rows;
}

// Rows of the table, as text, which reads back bit for bit; or the line that makes it void.
Work make_rows(const CertificationJob& plan) {
  return [&](int64_t item) {
    try {
      std::string text;
      for (const CertificateRow& row : certify_item(plan, item)) text += format_row(row);
      return text;
    } catch (const ClassifierChanged& changed) {
      return format_void(changed.what());
    }
  };
}

void certify_rest(const CertificationJob& plan, const Context& context, CertificateFile& file) {
  const Items items(plan);
  const auto done = static_cast<int64_t>(file.rows().size());
  const auto progress = begin_progress(context, "certify", done, items.images);
  int64_t correct = 0;
  for (const CertificateRow& row : file.rows()) correct += row.correct();
  const auto take = [&](int64_t item, const std::string& text) {
    if (is_void(text)) {
      file.append_void(text);
      throw Error("{}: its answers changed while it was certified; the table is void",
                  plan.subject.model_path.string());
    }
    const auto rows = parse_certificates(certificate_header() + text, "rows");
    // An item that was cut off in the middle is made again, but its first rows are there.
    for (int64_t i = std::max(done, items.begin(item)); i < items.end(item); ++i) {
      file.append(rows[i - items.begin(item)]);
      correct += file.rows().back().correct();
      progress->step(fmt::format(
          "correct {:.1f}%", 100.0 * static_cast<double>(correct) / static_cast<double>(i + 1)));
    }
  };
  try {
    const int64_t first = done == items.images ? items.count() : done / items.at_once;
    hand_out(ranks_of(context), first, items.count(), make_rows(plan), take);
  } catch (const Interrupted&) {
    throw Interrupted{"interrupted; continue with --resume"};
  }
}

std::unique_ptr<CertificateFile> open_table(const CertificationJob& plan, const fs::path& table,
                                            bool resume, const Context& context) {
  nlohmann::json provenance = build_provenance();
  provenance["threads"] = thread_count(context);
  if (ranks_of(context).size() > 1) provenance["ranks"] = ranks_of(context).size();
  const nlohmann::json sidecar = {{"identity", plan.identity},
                                  {"classes", plan.subject.class_names},
                                  {"model", plan.subject.model_path.string()},
                                  {"data_root", plan.subject.experiment.data.root},
                                  {"values", plan.data.image(0).count()},
                                  {"provenance", provenance}};
  auto file = std::make_unique<CertificateFile>(table, sidecar, resume);
  check_is_beginning(file->rows(), plan, table);
  return file;
}

// A seed on the command line is that of the certificates. Every rank must draw the same one.
Overrides settle_seed(Overrides overrides) {
  for (size_t i = 0; i < overrides.size(); ++i) {
    auto& [key, value] = overrides[i];
    if (key != "seed") continue;
    if (value == "random") value = std::to_string(random_seed());
    overrides.emplace_back("certify.seed", std::string(value));
  }
  return overrides;
}

nlohmann::json describe_job(const CertifyArguments& a, const Overrides& overrides) {
  return {{"kind", "certify"}, {"path", a.path}, {"shard", a.shard}, {"overrides", overrides}};
}

}  // namespace

fs::path certify(const CertifyArguments& a, const Overrides& given, const Context& context) {
  const Overrides overrides = settle_seed(given);
  check_context(context);
  Ranks& ranks = ranks_of(context);
  announce_job(ranks, describe_job(a, overrides));
  const CertificationJob plan = load_together(a, overrides, context);
  const fs::path table = a.out.empty() ? table_path(a.path, "certificates") : fs::path(a.out);
  std::unique_ptr<CertificateFile> file;
  do_together(ranks, [&] { file = open_table(plan, table, a.resume, context); });
  do_together(ranks, [&] { certify_rest(plan, context, *file); });
  const Experiment& e = plan.subject.experiment;
  if (ranks.leads() && e.log.tensorboard && fs::is_directory(a.path) && a.out.empty()) {
    write_certificate_events(a.path, e.train.rounds, file->rows());
  }
  return table;
}

void certify_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                     const CertificationOptions& options, const fs::path& table, bool resume,
                     const Context& context) {
  check_context(context);
  const CertificationJob plan = plan_in_hand(classifier, images, options);
  certify_rest(plan, context, *open_table(plan, table, resume, context));
}

void take_certification(const nlohmann::json& job, const Context& context) {
  Ranks& ranks = ranks_of(context);
  const CertificationJob plan =
      load_together({job["path"], "", job["shard"]}, job["overrides"].get<Overrides>(), context);
  do_together(ranks, [] {});  // rank 0 opens its table
  do_together(ranks, [&] { work_on_items(ranks, make_rows(plan)); });
}

bool is_certified(const fs::path& run, const Experiment& e) {
  const fs::path table = table_path(run, "certificates");
  if (!fs::exists(table)) return false;
  nlohmann::json wanted = describe_options(e);
  wanted.update({{"model_sha256", sha256(read_file(run / "model.safetensors"))},
                 {"sigma", certified_sigma(e)},
                 {"seed", certified_seed(e)},
                 {"every", e.certify.every},
                 {"limit", e.certify.limit},
                 {"shard", "1/1"}});
  const nlohmann::json identity = read_sidecar(table)["identity"];
  // Older tables of noise in floating point do not state it; whole ones are not made again.
  if (!identity.contains("noise") && e.certify.noise == NoiseKind::kFloat) wanted.erase("noise");
  for (const auto& [key, value] : wanted.items()) {
    if (!identity.contains(key) || identity[key] != value) return false;
  }
  for (const char* key : {"radii", "plan"}) {
    if (identity.contains(key) && !wanted.contains(key)) return false;
  }
  const auto images = find_count(identity, "images", sidecar_path(table).string());
  return images == static_cast<int64_t>(read_certificates(table).size());
}

}  // namespace fedsmooth::jobs
