#include "cli/certification.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "cli/rank_jobs.h"
#include "cli/subject.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/distributed/hand_out.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/report/certificate_file.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct Shard {
  int64_t number = 1, count = 1;
};

Shard parse_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  char end = 0;
  if (std::sscanf(text.c_str(), "%ld/%ld%c", &shard.number, &shard.count, &end) != 2 ||
      shard.number < 1 || shard.number > shard.count) {
    throw Error("--shard={}: must be I/K with 1 <= I <= K", text);
  }
  return shard;
}

// Of the chosen images, a shard takes each K-th.
std::vector<int64_t> take_shard(const std::vector<int64_t>& images, Shard shard) {
  std::vector<int64_t> taken;
  for (size_t i = shard.number - 1; i < images.size(); i += shard.count) taken.push_back(images[i]);
  return taken;
}

// What the certificates of an experiment depend on, but for model and data.
nlohmann::json describe_options(const Experiment& e) {
  const bool one_sided = e.certify.radius == RadiusKind::kOneSided;
  return {{"n0", e.certify.n0},
          {"n", e.certify.n},
          {"alpha", e.certify.alpha},
          {"radius", one_sided ? "one-sided" : "multiclass"}};
}

// An earlier part of the same certification: its rows must be the first of the planned images.
void check_is_beginning(const std::vector<CertificateRow>& rows, const std::vector<int64_t>& images,
                        const Dataset& data, const fs::path& table) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= images.size() || rows[i].index != images[i] ||
        rows[i].label != data.label(images[i])) {
      throw Error("{}: row {} is image {}, which this certification does not have there",
                  table.string(), i + 1, rows[i].index);
    }
  }
}

// What is certified: the same at every rank.
struct Plan {
  Dataset data;
  Subject subject;
  std::vector<int64_t> images;
  nlohmann::json identity;
};

Plan load_plan(const CertifyArguments& a, const Overrides& overrides) {
  const Shard shard = parse_shard(a.shard);
  Plan plan;
  plan.data = load_dataset(subject_experiment(a.path, overrides).data, Split::kTest);
  plan.subject = load_subject(a.path, overrides, &plan.data, image_shape(plan.data));
  const CertificationOptions& options = plan.subject.experiment.certify;
  check_certify_options(options, plan.subject.sigma);
  plan.images = take_shard(choose_images(plan.data.size(), options), shard);
  if (plan.images.empty()) throw Error("--shard={}: no images are left for it", a.shard);
  plan.identity = describe_subject(plan.subject, plan.data);
  plan.identity.update(describe_options(plan.subject.experiment));
  plan.identity["shard"] = fmt::format("{}/{}", shard.number, shard.count);
  return plan;
}

Plan load_together(const CertifyArguments& a, const Overrides& overrides, Ranks& ranks) {
  Plan plan;
  agree(ranks, [&] { return (plan = load_plan(a, overrides)).identity; });
  return plan;
}

CertificateRow certify_image(Sampler& sampler, const Plan& plan, int64_t image) {
  const auto start = std::chrono::steady_clock::now();
  const Experiment& e = plan.subject.experiment;
  const double sigma = plan.subject.sigma;
  const Certificate found = certify(sampler, plan.data.image(image), sigma, e.certify, e.seed,
                                    static_cast<uint32_t>(image));
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return {image,  plan.data.label(image),     spent.count(), e.certify.n0, e.certify.alpha, sigma,
          e.seed, plan.subject.f.description, found};
}

// A row of the table for each item, as text, which reads back bit for bit.
Work make_rows(const Plan& plan, Sampler& sampler) {
  return [&](int64_t i) {
    try {
      return format_row(certify_image(sampler, plan, plan.images[i]));
    } catch (const Cancelled&) {
      throw Stopped{};
    }
  };
}

void check_again(const Plan& plan) {
  const Subject& subject = plan.subject;
  if (check_is_function(subject.f, image_shape(plan.data)) != subject.fingerprint) {
    throw Error("{}: the model's answers changed while it was certified; its table is void",
                subject.model_path.string());
  }
}

void certify_all(const Plan& plan, const Common& common, CertificateFile& file) {
  ThreadedSampler sampler(plan.subject.f, thread_count(common), interrupted);
  const auto first = static_cast<int64_t>(file.rows().size());
  const auto count = static_cast<int64_t>(plan.images.size());
  Progress progress("certify", first, count, common.quiet);
  int64_t correct = 0;
  for (const CertificateRow& row : file.rows()) correct += row.correct();
  try {
    hand_out(*common.ranks, first, count, make_rows(plan, sampler),
             [&](int64_t i, const std::string& row) {
               file.append(parse_certificates(certificate_header() + row, "row").front());
               correct += file.rows().back().correct();
               progress.step(fmt::format("correct {:.1f}%", 100.0 * static_cast<double>(correct) /
                                                                static_cast<double>(i + 1)));
             });
  } catch (const Stopped&) {
    throw Interrupted{"interrupted; go on with --resume"};
  }
  check_again(plan);
}

std::unique_ptr<CertificateFile> open_table(const CertifyArguments& a, const Plan& plan,
                                            const fs::path& table, const Common& common) {
  nlohmann::json provenance = build_provenance();
  provenance["threads"] = thread_count(common);
  if (common.ranks->size() > 1) provenance["ranks"] = common.ranks->size();
  const nlohmann::json sidecar = {{"identity", plan.identity},
                                  {"classes", plan.subject.class_names},
                                  {"model", plan.subject.model_path.string()},
                                  {"provenance", provenance}};
  auto file = std::make_unique<CertificateFile>(table, sidecar, a.resume);
  check_is_beginning(file->rows(), plan.images, plan.data, table);
  return file;
}

nlohmann::json describe_job(const CertifyArguments& a, const Overrides& overrides) {
  return {{"kind", "certify"}, {"path", a.path}, {"shard", a.shard}, {"overrides", overrides}};
}

}  // namespace

fs::path certify_images(const CertifyArguments& a, const Overrides& overrides,
                        const Common& common) {
  refuse_gpu(common);
  thread_count(common);  // refuses before anything is loaded
  Ranks& ranks = *common.ranks;
  announce_job(ranks, describe_job(a, overrides));
  const Plan plan = load_together(a, overrides, ranks);
  const fs::path table = a.out.empty() ? table_path(a.path, "certificates") : fs::path(a.out);
  std::unique_ptr<CertificateFile> file;
  do_together(ranks, [&] { file = open_table(a, plan, table, common); });
  do_together(ranks, [&] { certify_all(plan, common, *file); });
  return table;
}

void take_certification(const nlohmann::json& job, const Common& common) {
  Ranks& ranks = *common.ranks;
  const Plan plan =
      load_together({job["path"], "", job["shard"]}, job["overrides"].get<Overrides>(), ranks);
  do_together(ranks, [] {});  // rank 0 opens its table
  do_together(ranks, [&] {
    ThreadedSampler sampler(plan.subject.f, thread_count(common), interrupted);
    work_on_items(ranks, make_rows(plan, sampler));
    check_again(plan);
  });
}

bool is_certified(const fs::path& run, const Experiment& e) {
  const fs::path table = table_path(run, "certificates");
  if (!fs::exists(table)) return false;
  nlohmann::json wanted = describe_options(e);
  wanted.update({{"sigma", e.certify.sigma > 0 ? e.certify.sigma : e.smoothing.sigma},
                 {"seed", e.seed},
                 {"every", e.certify.every},
                 {"limit", e.certify.limit},
                 {"shard", "1/1"}});
  const nlohmann::json identity = read_sidecar(table)["identity"];
  for (const auto& [key, value] : wanted.items()) {
    if (identity.value(key, nlohmann::json()) != value) return false;
  }
  return identity.value("images", nlohmann::json()) == read_certificates(table).size();
}

}  // namespace fedsmooth::cli
