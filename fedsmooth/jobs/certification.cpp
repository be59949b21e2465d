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
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/rank_jobs.h"
#include "fedsmooth/jobs/subject.h"
#include "fedsmooth/jobs/tensorboard.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

Shard asked_shard(const std::string& text) {
  if (text.empty()) return {};
  const std::optional<Shard> shard = parse_shard(text);
  if (!shard) throw Error("--shard={}: must be I/K with 1 <= I <= K", text);
  return *shard;
}

// A shard takes every Kth of the chosen images.
std::vector<int64_t> take_shard(const std::vector<int64_t>& images, Shard shard) {
  std::vector<int64_t> taken;
  for (size_t i = shard.number - 1; i < images.size(); i += shard.count) taken.push_back(images[i]);
  return taken;
}

// What the certificates of an experiment depend on, but for model and data.
nlohmann::json describe_options(const Experiment& e) {
  nlohmann::json described = {{"n0", e.certify.n0},
                              {"n", e.certify.n},
                              {"alpha", e.certify.alpha},
                              {"radius", radius_name(e.certify.radius)},
                              {"only_correct", e.certify.only_correct},
                              {"noise_bank", e.certify.noise_bank}};
  if (e.certify.noise == NoiseKind::kExact) described["noise"] = "exact";
  return described;
}

// What is certified: the same at every rank.
struct Plan {
  Dataset data;
  Subject subject;
  std::shared_ptr<Sampler> sampler;
  std::vector<int64_t> images;
  bool picked = false;  // the data hold these images alone
  nlohmann::json identity;

  // Where image number i of those that are certified is in the data.
  int64_t row(size_t i) const { return picked ? static_cast<int64_t>(i) : images[i]; }
};

// An earlier part of the same certification: its rows must be the first of the planned images.
void check_is_beginning(const std::vector<CertificateRow>& rows, const Plan& plan,
                        const fs::path& table) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= plan.images.size() || rows[i].index != plan.images[i] ||
        rows[i].label != plan.data.label(plan.row(i))) {
      throw Error("{}: row {} is image {}, which this certification does not have there",
                  table.string(), i + 1, rows[i].index);
    }
  }
}

Plan load_plan(const CertifyArguments& a, const Overrides& overrides, const Context& context) {
  const Shard shard = asked_shard(a.shard);
  Plan plan;
  plan.data = load_dataset(subject_experiment(a.path, overrides).data, Split::kTest);
  const Shape shape = image_shape(plan.data);
  plan.subject = load_subject(a.path, overrides, &plan.data, shape, context.device);
  const CertificationOptions& options = plan.subject.experiment.certify;
  check_certify_options(options, plan.subject.sigma);
  plan.images = take_shard(choose_images(plan.data.size(), options), shard);
  if (plan.images.empty()) throw Error("--shard={}: no images are left for it", a.shard);
  plan.sampler = make_sampler(plan.subject.f, thread_count(context), context.stopped);
  plan.subject.fingerprint = plan.sampler->check(plan.data.shape());
  plan.identity = describe_subject(plan.subject, plan.data);
  plan.identity.update(describe_options(plan.subject.experiment));
  plan.identity["shard"] = fmt::format("{}/{}", shard.number, shard.count);
  return plan;
}

Plan load_together(const CertifyArguments& a, const Overrides& overrides, const Context& context) {
  Plan plan;
  agree(ranks_of(context), [&] { return (plan = load_plan(a, overrides, context)).identity; });
  return plan;
}

// A wave of images is an item of the work: number i has those from at_once i on.
struct Items {
  explicit Items(const Plan& plan)
      : images(static_cast<int64_t>(plan.images.size())),
        at_once(images_per_wave(*plan.sampler, plan.subject.experiment.certify.n)) {}

  int64_t images, at_once;

  int64_t count() const { return (images + at_once - 1) / at_once; }
  int64_t begin(int64_t i) const { return i * at_once; }
  int64_t end(int64_t i) const { return std::min(images, (i + 1) * at_once); }
};

std::vector<CertificateRow> certify_item(const Plan& plan, int64_t item) {
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
  const std::vector<Certificate> found = certify_all(*plan.sampler, some, sigma, e.certify, seed);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  const double each = spent.count() / static_cast<double>(some.size());
  std::vector<CertificateRow> rows;
  for (size_t i = 0; i < some.size(); ++i) {
    rows.push_back({some[i].index, some[i].label, each, e.certify.n0, e.certify.alpha, sigma, seed,
                    sampler.description(), found[i], sampler.noise_kind(), e.certify.noise_bank});
  }
  return rows;
}

// Rows of the table, as text, which reads back bit for bit; or the line that makes it void.
Work make_rows(const Plan& plan) {
  return [&](int64_t item) {
    try {
      std::string text;
      for (const CertificateRow& row : certify_item(plan, item)) text += format_row(row);
      return text;
    } catch (const Cancelled&) {
      throw Stopped{};
    } catch (const ClassifierChanged& changed) {
      return format_void(changed.what());
    }
  };
}

void certify_rest(const Plan& plan, const Context& context, CertificateFile& file) {
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
  } catch (const Stopped&) {
    throw Interrupted{"interrupted; continue with --resume"};
  }
}

std::unique_ptr<CertificateFile> open_table(const Plan& plan, const fs::path& table, bool resume,
                                            const Context& context) {
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

void check_images_in_hand(const ImagesInHand& a, int64_t classes) {
  if (a.images.size() == 0) throw Error("data: no images");
  if (std::ssize(a.indices) != a.images.size()) {
    throw Error("data: {} images with {} indices", a.images.size(), a.indices.size());
  }
  for (size_t i = 0; i < a.indices.size(); ++i) {
    if (a.indices[i] < 0 || a.indices[i] > UINT32_MAX) {
      throw Error("data: index {} must be from 0 to 2^32 - 1", a.indices[i]);
    }
    if (i > 0 && a.indices[i] <= a.indices[i - 1]) throw Error("data: indices must rise");
    const int64_t label = a.images.labels[i];
    if (label < 0 || label >= classes) {
      throw Error("data: label {} of image {}; there are {} classes", label, a.indices[i], classes);
    }
  }
  const Array& images = a.images.images;
  if (images.type() == Array::Type::kByte) return;
  // CERTIFY refuses them too, but after the table was begun.
  const auto inside = [](float value) { return value >= 0 && value <= 1; };
  if (!std::all_of(images.floats(), images.floats() + images.count(), inside)) {
    throw Error("data: pixel values outside [0, 1]; divide bytes by 255 and do not normalise");
  }
}

Plan plan_in_hand(const ClassifierInHand& c, const ImagesInHand& a,
                  const CertificationOptions& options) {
  Plan plan;
  check_images_in_hand(a, a.images.classes());
  check_certify_options(options, options.sigma);
  plan.data = a.images;
  plan.sampler = c.sampler;
  plan.subject.model_path = c.name;
  plan.subject.sigma = options.sigma;
  plan.subject.class_names = a.images.class_names;
  plan.subject.experiment.certify = options;
  plan.images = a.indices;
  plan.picked = true;
  const std::string& fingerprint = c.sampler->check(a.images.shape());
  plan.identity = describe_options(plan.subject.experiment);
  plan.identity.update({{"model_sha256", c.sha256.empty() ? fingerprint : c.sha256},
                        {"data", a.name},
                        {"data_sha256", a.sha256.empty() ? digest(a.images) : a.sha256},
                        {"sigma", options.sigma},
                        {"seed", certified_seed(plan.subject.experiment)},
                        {"every", options.every},
                        {"limit", options.limit},
                        {"images", plan.images.size()},
                        {"fingerprint", fingerprint},
                        {"base", c.sampler->description()},
                        {"shard", "1/1"}});
  return plan;
}

nlohmann::json describe_job(const CertifyArguments& a, const Overrides& overrides) {
  return {{"kind", "certify"}, {"path", a.path}, {"shard", a.shard}, {"overrides", overrides}};
}

}  // namespace

std::optional<Shard> parse_shard(const std::string& text) {
  Shard shard;
  char end = 0;
  const int read = std::sscanf(text.c_str(), "%ld/%ld%c", &shard.number, &shard.count, &end);
  if (read != 2 || shard.number < 1 || shard.number > shard.count) return std::nullopt;
  return shard;
}

fs::path certify(const CertifyArguments& a, const Overrides& given, const Context& context) {
  const Overrides overrides = settle_seed(given);
  check_context(context);
  Ranks& ranks = ranks_of(context);
  announce_job(ranks, describe_job(a, overrides));
  const Plan plan = load_together(a, overrides, context);
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
  const Plan plan = plan_in_hand(classifier, images, options);
  certify_rest(plan, context, *open_table(plan, table, resume, context));
}

void take_certification(const nlohmann::json& job, const Context& context) {
  Ranks& ranks = ranks_of(context);
  const Plan plan =
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
  for (const auto& [key, value] : wanted.items()) {
    if (!identity.contains(key) || identity[key] != value) return false;
  }
  if (identity.contains("noise") != wanted.contains("noise")) return false;
  const auto images = find_count(identity, "images", sidecar_path(table).string());
  return images == static_cast<int64_t>(read_certificates(table).size());
}

}  // namespace fedsmooth::jobs
