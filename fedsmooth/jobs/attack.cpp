#include "fedsmooth/jobs/attack.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/certification/attacker.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/records/attack_identity.h"
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

AttackIdentity identify_attack(const AttackJob& job, const SubjectIdentity& subject) {
  const Experiment& e = job.subject.experiment;
  AttackIdentity identity;
  static_cast<SubjectIdentity&>(identity) = subject;
  identity.n = job.n;
  identity.epsilons = job.epsilons;
  identity.estimator = nlohmann::json::parse(show_key(e, "attack.estimator"));
  identity.steps = e.attack.steps;
  identity.step_size = AutomaticNumber{e.attack.step_size};
  identity.normalize = e.attack.normalize;
  identity.m = e.smoothing.m;
  identity.noise = option_of_law(*e.certify.noise);
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

// Writes the rows of images in the order of the images, whatever the order in which they come.
class OrderedRows {
 public:
  OrderedRows(size_t first, TableFile& file, Progress& progress)
      : written_(first), file_(file), progress_(progress) {}

  void take(std::map<size_t, std::vector<AttackRow>> rows) {
    const std::lock_guard lock(mutex_);
    waiting_.merge(rows);
    for (; waiting_.contains(written_); waiting_.erase(written_++)) {
      file_.append(format_rows(waiting_[written_]));
      progress_.step("");
    }
  }

 private:
  std::mutex mutex_;
  std::map<size_t, std::vector<AttackRow>> waiting_;
  size_t written_;
  TableFile& file_;
  Progress& progress_;
};

// Attacks the images that `next` gives, until there are none. Rows are written once a probe has
// shown that the classifier did not change while their votes were counted.
void attack_by_one_thread(const AttackJob& job, std::atomic<size_t>& next, OrderedRows& out) {
  Attacker attacker(job);
  std::map<size_t, std::vector<AttackRow>> unprobed;
  const auto probe = [&] {
    if (unprobed.empty()) return;
    attacker.probe();
    out.take(std::exchange(unprobed, {}));
  };
  try {
    for (size_t i; (i = next.fetch_add(1)) < job.images.size();) {
      unprobed[i] = attacker.attack(job.images[i]);
      if (std::ssize(unprobed) >= attacker.images_per_probe()) probe();
    }
  } catch (const Interrupted&) {
    probe();
    throw;
  }
  probe();
}

// Each image is attacked by the next free thread.
void attack_images(const AttackJob& job, size_t first, const Context& context, TableFile& file) {
  Workers workers(thread_count(context));
  const auto progress = begin_progress(context, "attack", static_cast<int64_t>(first),
                                       static_cast<int64_t>(job.images.size()));
  std::atomic<size_t> next = first;
  OrderedRows out(first, file, *progress);
  workers.run([&](int) {
    try {
      attack_by_one_thread(job, next, out);
    } catch (...) {
      next = job.images.size();  // ends the work of all threads
      throw;
    }
  });
}

// Attacks the images that are not in the table yet.
void attack_rest(const AttackJob& job, const AttackArguments& a, const fs::path& table,
                 const AttackIdentity& identity, const Context& context) {
  std::vector<AttackRow> kept;
  try {
    TableFile file(
        table, attack_header(),
        {{"identity", identity.to_json()}, {"provenance", build_provenance()}}, a.resume,
        [&](const std::string& text) {
          kept = keep_whole_images(job, text, table.string());
          return attack_header() + format_rows(kept);
        },
        [&](const nlohmann::json& old) {
          const auto there = AttackIdentity::from_json(old, sidecar_path(table).string());
          refuse_difference(identity.difference(there), table);
        });
    try {
      attack_images(job, kept.size() / job.epsilons.size(), context, file);
    } catch (const ClassifierChanged& changed) {
      file.append(format_void(changed.what()));
      throw Error("{}: its answers changed while it was attacked; the table is void",
                  job.subject.model_path.string());
    }
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
  subject.fingerprint =
      make_sampler(subject.f, *subject.experiment.certify.noise, 1)->check(data.shape());
  const AttackJob job{subject,
                      data,
                      choose_images(data.size(), subject.experiment.certify),
                      epsilons,
                      a.n,
                      context.stopped,
                      subject.load_gradients()};

  const fs::path table = a.out.empty() ? table_path(a.path, "attack") : fs::path(a.out);
  const SubjectIdentity identity = identify(subject, data, digest(data));
  attack_rest(job, a, table, identify_attack(job, identity), context);
  AttackSummary summary = summarize_attacks(table, identity, table_path(a.path, "certificates"));
  for (const std::string& warning : summary.warnings) context.warn("warning: " + warning);
  return {table, std::move(summary)};
}

}  // namespace fedsmooth::jobs
