#include "fedsmooth/jobs/attack.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/jobs/certification/attacker.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/records/run.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// A stronger attack than in training, where every step pays for it. Users' overrides come after
// these and win.
const Overrides kDefaults = {
    {"attack.estimator", "stochastic"},
    {"attack.steps", "10"},
    {"attack.step_size", "auto"},
    {"attack.normalize", "true"},
    {"smoothing.m", "32"},
    {"certify.noise", "float"}};  // exact noise needs images of bytes; moved images have none

constexpr double kMaxEpsilon = 1e6;  // no two images are that far apart

// Returns the epsilons in ascending order, with 0 for the image itself.
std::vector<double> settle_epsilons(const std::vector<double>& given) {
  std::set<double> epsilons = {0.0};
  for (const double epsilon : given) {
    if (!(epsilon >= 0 && epsilon <= kMaxEpsilon)) {
      throw Error("--epsilon={}: must be between 0 and {}", epsilon, kMaxEpsilon);
    }
    epsilons.insert(epsilon);
  }
  return {epsilons.begin(), epsilons.end()};
}

Overrides with_defaults(const Overrides& overrides) {
  Overrides all = kDefaults;
  for (const auto& [key, value] : overrides) {
    if (key == "attack.epsilon") throw Error("--attack.epsilon: is training's; give --epsilon");
    all.emplace_back(key, value);
  }
  return all;
}

// Each thread has a sampler, and a sampler of groups has the memory of all their networks.
std::string device_of(const AttackArguments& a, const Context& context) {
  if (!is_run_of_groups(a.path)) return context.device;
  if (context.device == "cuda") {
    throw Error("--device=cuda: a run of several groups is attacked by CPU cores; use cpu");
  }
  return "cpu";
}

nlohmann::json describe(const AttackJob& job, const SubjectIdentity& subject) {
  nlohmann::json identity = subject.to_json();
  identity["n"] = job.n;
  identity["epsilons"] = job.epsilons;
  for (const auto& [key, value] : kDefaults) {
    identity[key] = nlohmann::json::parse(show_key(job.subject.experiment, key));
  }
  return identity;
}

// Returns the rows of an interrupted attack, without an image that it did not finish. They must be
// those of the first images of the job.
std::vector<AttackRow> keep_whole_images(const AttackJob& job, const std::string& text,
                                         const std::string& name) {
  std::vector<AttackRow> rows = parse_attacks(text, name);
  const size_t per_image = job.epsilons.size();
  rows.resize(rows.size() / per_image * per_image);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i / per_image >= job.images.size() || rows[i].index != job.images[i / per_image] ||
        rows[i].epsilon != job.epsilons[i % per_image]) {
      throw Error("{}: row {} is image {} at epsilon {}, which this attack does not have there",
                  name, i + 1, rows[i].index, rows[i].epsilon);
    }
  }
  return rows;
}

std::string format_rows(const std::vector<AttackRow>& rows) {
  std::string text;
  for (const AttackRow& row : rows) text += format_attack(row);
  return text;
}

// Each image is attacked by the next free thread; rows are written in the order of the images.
void attack_images(const AttackJob& job, size_t first, const Context& context, TableFile& file) {
  Workers workers(thread_count(context));
  const auto progress = begin_progress(context, "attack", static_cast<int64_t>(first),
                                       static_cast<int64_t>(job.images.size()));
  std::atomic<size_t> next = first;
  std::mutex mutex;
  std::map<size_t, std::vector<AttackRow>> waiting;
  size_t written = first;
  const auto take = [&](size_t i, std::vector<AttackRow> rows) {
    const std::lock_guard lock(mutex);
    waiting[i] = std::move(rows);
    for (; waiting.contains(written); waiting.erase(written++)) {
      file.append(format_rows(waiting[written]));
      progress->step("");
    }
  };
  workers.run([&](int) {
    try {
      Attacker attacker(job);
      for (size_t i; (i = next.fetch_add(1)) < job.images.size();) {
        take(i, attacker.attack(job.images[i]));
      }
    } catch (...) {
      next = job.images.size();  // ends the work of all threads
      throw;
    }
  });
}

// Throws an Error unless a table of identity `old` may be continued as one of identity `now`.
void check_continues(const nlohmann::json& now, const nlohmann::json& old, const fs::path& table) {
  nlohmann::json stated = old;  // written as this version does: earlier ones had seeds as numbers
  stated.update(SubjectIdentity::from_json(old, sidecar_path(table).string()).to_json());
  refuse_difference(identity_difference(now, stated), table);
}

// Attacks the images that are not in the table yet.
void attack_rest(const AttackJob& job, const AttackArguments& a, const fs::path& table,
                 const nlohmann::json& identity, const Context& context) {
  std::vector<AttackRow> kept;
  try {
    TableFile file(
        table, attack_header(), {{"identity", identity}, {"provenance", build_provenance()}},
        a.resume,
        [&](const std::string& text) {
          kept = keep_whole_images(job, text, table.string());
          return attack_header() + format_rows(kept);
        },
        [&](const nlohmann::json& old) { check_continues(identity, old, table); });
    attack_images(job, kept.size() / job.epsilons.size(), context, file);
    seal_table(table);
  } catch (const Interrupted&) {
    throw Interrupted{"interrupted; continue with --resume"};
  }
}

}  // namespace

AttackOutcome attack(const AttackArguments& a, const Overrides& given, const Context& context) {
  const Overrides overrides = with_defaults(given);
  check_context(context);
  const std::vector<double> epsilons = settle_epsilons(a.epsilons);
  if (a.n < 1) throw Error("--n={}: must be positive", a.n);
  const Dataset data = load_dataset(data_of_model(a.path, overrides), Split::kTest);
  ModelUnderTest subject =
      load_under_test({a.path, {}}, overrides, &data, image_shape(data), device_of(a, context));
  subject.fingerprint = check_is_function(subject.f, data.shape()).fingerprint;
  const AttackJob job{subject,
                      data,
                      choose_images(data.size(), subject.experiment.certify),
                      epsilons,
                      a.n,
                      context.stopped,
                      subject.load_gradients()};

  const fs::path table = a.out.empty() ? table_path(a.path, "attack") : fs::path(a.out);
  const SubjectIdentity identity = identify(subject, data, digest(data));
  attack_rest(job, a, table, describe(job, identity), context);
  AttackSummary summary = summarize_attacks(table, identity, table_path(a.path, "certificates"));
  for (const std::string& warning : summary.warnings) context.warn("warning: " + warning);
  return {table, std::move(summary)};
}

}  // namespace fedsmooth::jobs
