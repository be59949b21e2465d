#include "cli/certification.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "cli/subject.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/samplers.h"
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
          {"radius", one_sided ? "one-sided" : "multiclass"},
          {"only_correct", e.certify.only_correct},
          {"noise_bank", e.certify.noise_bank}};
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

void certify_rest(const Subject& subject, const Dataset& data, const std::vector<int64_t>& images,
                  int threads, bool quiet, CertificateFile& file) {
  const Experiment& e = subject.experiment;
  const std::unique_ptr<Sampler> sampler = make_sampler(subject.f, threads, interrupted);
  Progress progress("certify", static_cast<int64_t>(file.rows().size()),
                    static_cast<int64_t>(images.size()), quiet);
  int64_t correct = 0;
  for (const CertificateRow& row : file.rows()) correct += row.correct();
  for (size_t begin = file.rows().size(); begin < images.size();) {
    const auto start = std::chrono::steady_clock::now();
    const auto at_once = static_cast<size_t>(sampler->requests_at_once(e.certify.n));
    std::vector<LabelledImage> some;
    for (size_t i = begin; i < std::min(images.size(), begin + at_once); ++i) {
      const int64_t image = images[i];
      some.push_back({data.image(image), static_cast<uint32_t>(image), data.label(image)});
    }
    const std::vector<Certificate> found =
        certify_all(*sampler, some, subject.sigma, e.certify, e.seed);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    const double each = spent.count() / static_cast<double>(some.size());
    for (size_t i = 0; i < some.size(); ++i) {
      file.append({some[i].index, some[i].label, each, e.certify.n0, e.certify.alpha, subject.sigma,
                   e.seed, subject.f.description, found[i]});
      correct += file.rows().back().correct();
      const auto done = static_cast<double>(begin + i + 1);
      progress.step(fmt::format("correct {:.1f}%", 100.0 * static_cast<double>(correct) / done));
    }
    begin += some.size();
  }
}

}  // namespace

fs::path certify_images(const CertifyArguments& a, const Overrides& overrides,
                        const Common& common) {
  const int threads = thread_count(common);
  const Shard shard = parse_shard(a.shard);
  const Dataset data = load_dataset(subject_experiment(a.path, overrides).data, Split::kTest);
  const Subject subject = load_subject(a.path, overrides, &data, image_shape(data), common.device);
  const CertificationOptions& options = subject.experiment.certify;
  check_certify_options(options, subject.sigma);
  const std::vector<int64_t> images = take_shard(choose_images(data.size(), options), shard);
  if (images.empty()) throw Error("--shard={}: no images are left for it", a.shard);

  const fs::path table = a.out.empty() ? table_path(a.path, "certificates") : fs::path(a.out);
  nlohmann::json identity = describe_subject(subject, data);
  identity.update(describe_options(subject.experiment));
  identity["shard"] = fmt::format("{}/{}", shard.number, shard.count);
  nlohmann::json provenance = build_provenance();
  provenance["threads"] = threads;
  CertificateFile file(table,
                       {{"identity", identity},
                        {"classes", subject.class_names},
                        {"model", subject.model_path.string()},
                        {"provenance", provenance}},
                       a.resume);
  check_is_beginning(file.rows(), images, data, table);
  try {
    certify_rest(subject, data, images, threads, common.quiet, file);
  } catch (const Cancelled&) {
    throw Interrupted{"interrupted; go on with --resume"};
  }
  if (check_is_function(subject.f, image_shape(data)) != subject.fingerprint) {
    throw Error("{}: the model's answers changed while it was certified; {} is void",
                subject.model_path.string(), table.string());
  }
  return table;
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
