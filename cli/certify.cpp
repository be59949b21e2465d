// fedsmooth certify RUN_OR_MODEL: CERTIFY on the test set.
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "cli/subject.h"
#include "cli/tables.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/report/certificate_file.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct CertifyArguments {
  std::string path, out, shard;
  bool resume = false;
};

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

// Every so many-th image up to the limit; of these a shard takes each K-th.
std::vector<int64_t> choose_images(int64_t size, const CertificationOptions& o, Shard shard) {
  std::vector<int64_t> images;
  int64_t place = 0;
  for (int64_t i = 0; i < size && (o.limit == 0 || place < o.limit); i += o.every, ++place) {
    if (place % shard.count == shard.number - 1) images.push_back(i);
  }
  return images;
}

// What the rows are about. `planned` images are certified by all shards together.
nlohmann::json describe(const Subject& subject, const Dataset& data, Shard shard, int64_t planned) {
  const Experiment& e = subject.experiment;
  const bool one_sided = e.certify.radius == RadiusKind::kOneSided;
  return {{"model_sha256", subject.sha256},
          {"data", e.data.name},
          {"data_sha256", digest(data)},
          {"sigma", subject.sigma},
          {"n0", e.certify.n0},
          {"n", e.certify.n},
          {"alpha", e.certify.alpha},
          {"radius", one_sided ? "one-sided" : "multiclass"},
          {"seed", e.seed},
          {"every", e.certify.every},
          {"limit", e.certify.limit},
          {"shard", fmt::format("{}/{}", shard.number, shard.count)},
          {"images", planned},
          {"fingerprint", subject.fingerprint},
          {"base", subject.f.description}};
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

void certify_images(const Subject& subject, const Dataset& data, const std::vector<int64_t>& images,
                    int threads, bool quiet, CertificateFile& file) {
  const Experiment& e = subject.experiment;
  ThreadedSampler sampler(subject.f, threads, interrupted);
  Progress progress("certify", static_cast<int64_t>(file.rows().size()),
                    static_cast<int64_t>(images.size()), quiet);
  int64_t correct = 0;
  for (const CertificateRow& row : file.rows()) correct += row.correct();
  for (size_t i = file.rows().size(); i < images.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const int64_t image = images[i];
    const Certificate found = certify(sampler, data.image(image), subject.sigma, e.certify, e.seed,
                                      static_cast<uint32_t>(image));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    file.append({image, data.label(image), spent.count(), e.certify.n0, e.certify.alpha,
                 subject.sigma, e.seed, subject.f.description, found});
    correct += file.rows().back().correct();
    progress.step(fmt::format("correct {:.1f}%",
                              100.0 * static_cast<double>(correct) / static_cast<double>(i + 1)));
  }
}

int run_certify(const CertifyArguments& a, const Overrides& overrides, const Common& common) {
  const int threads = thread_count(common);
  const Shard shard = parse_shard(a.shard);
  const Dataset data = load_dataset(subject_experiment(a.path, overrides).data, Split::kTest);
  const Subject subject = load_subject(a.path, overrides, &data, image_shape(data));
  check_certify_options(subject.experiment.certify, subject.sigma);
  const std::vector<int64_t> images = choose_images(data.size(), subject.experiment.certify, shard);
  const auto planned =
      static_cast<int64_t>(choose_images(data.size(), subject.experiment.certify, {}).size());
  if (images.empty()) throw Error("--shard={}: no images are left for it", a.shard);

  const fs::path table = a.out.empty() ? certificates_path(a.path) : fs::path(a.out);
  nlohmann::json provenance = build_provenance();
  provenance["threads"] = threads;
  const nlohmann::json sidecar = {{"identity", describe(subject, data, shard, planned)},
                                  {"classes", subject.class_names},
                                  {"model", subject.model_path.string()},
                                  {"provenance", provenance}};
  CertificateFile file(table, sidecar, a.resume);
  check_is_beginning(file.rows(), images, data, table);
  try {
    certify_images(subject, data, images, threads, common.quiet, file);
  } catch (const Cancelled&) {
    throw Interrupted{"interrupted; go on with --resume"};
  }
  if (check_is_function(subject.f, image_shape(data)) != subject.fingerprint) {
    throw Error("{}: the model's answers changed while it was certified; {} is void",
                subject.model_path.string(), table.string());
  }
  print_summary(table, common);
  return 0;
}

}  // namespace

void add_certify(CLI::App& app, Common& common) {
  auto a = std::make_shared<CertifyArguments>();
  Command c(app, common, "certify",
            "prove, per test image, the radius in which the answer is constant",
            "  fedsmooth certify runs/quickstart\n"
            "  fedsmooth certify model.safetensors --data.root=data --sigma 0.25 --every 1\n"
            "  fedsmooth certify scripted.pt --sigma 0.5 --shard 1/4 --out part1.tsv");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("n0", "certify.n0", "votes that choose the class");
  c.alias("n", "certify.n", "votes that bound its probability");
  c.alias("alpha", "certify.alpha", "failure probability per image");
  c.alias("every", "certify.every", "certify every so many-th image");
  c.alias("limit", "certify.limit", "at most so many images; 0: all");
  c.alias("radius", "certify.radius", "one-sided or multiclass");
  c.option("out", a->out, "table to write; beside the model if left out");
  c.option("shard", a->shard, "I/K: only part I of K, to be joined by merge");
  c.flag("resume", a->resume, "go on after the last complete row");
  c.on_run([a, &common](const Overrides& overrides) { return run_certify(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
