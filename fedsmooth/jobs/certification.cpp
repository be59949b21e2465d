#include "fedsmooth/jobs/certification.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/distributed/hand_out.h"
#include "fedsmooth/jobs/certification/certification_job.h"
#include "fedsmooth/jobs/certification/certification_rows.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/jobs/pages/tensorboard.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// Throws an Error unless the rows are those of the first planned images, in their order.
void check_is_beginning(const std::vector<CertificateRow>& rows, const CertificationJob& job,
                        const fs::path& table) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= job.images.size() || rows[i].index != job.images[i] ||
        rows[i].label != job.data.label(job.row(i))) {
      throw Error("{}: row {} is image {}, which this certification does not have there",
                  table.string(), i + 1, rows[i].index);
    }
  }
}

CertificationJob load_together(const CertifyArguments& a, const Overrides& overrides,
                               const Context& context) {
  CertificationJob job;
  TestSets test_sets;
  agree(ranks_of(context), [&] {
    job = load_job(a, overrides, context, test_sets);
    return job.identity.to_json();
  });
  return job;
}

// The work is handed out in items. Item i is a wave of at most at_once images, from image number
// i * at_once on.
struct Items {
  explicit Items(const CertificationJob& job)
      : images(static_cast<int64_t>(job.images.size())),
        at_once(images_per_wave(*job.sampler, job.subject.experiment.certify)) {
    // Among several ranks waves are smaller, so that every rank gets some.
    const int64_t share = (images + 4 * job.ranks - 1) / (4 * job.ranks);
    if (job.ranks > 1) at_once = std::min(at_once, std::max<int64_t>(16, share));
  }

  int64_t images, at_once;

  int64_t count() const { return (images + at_once - 1) / at_once; }
  int64_t begin(int64_t i) const { return i * at_once; }
  int64_t end(int64_t i) const { return std::min(images, (i + 1) * at_once); }
};

using Rows = std::vector<CertificateRow>;
using MakeRows = std::function<Rows(int64_t item)>;
using TakeRows = std::function<void(int64_t item, const Rows& rows)>;

// Ranks send rows as lines of the table, which read back bit for bit, or the line that makes the
// table void.
Work as_text(const MakeRows& make) {
  return [make](int64_t item) {
    try {
      std::string text;
      for (const CertificateRow& row : make(item)) text += format_row(row);
      return text;
    } catch (const ClassifierChanged& changed) {
      return format_void(changed.what());
    }
  };
}

Rows from_text(const std::string& text) {
  if (is_void(text)) throw ClassifierChanged("{}", void_reason(text));
  return parse_certificates(certificate_header() + text, "rows");
}

// Calls `take` with the rows of each item, in order. Makes the table void and throws an Error if
// the classifier changed.
void make_and_take(const CertificationJob& job, Ranks& ranks, int64_t first, int64_t count,
                   const MakeRows& make, const TakeRows& take, CertificateFile& file) {
  try {
    if (ranks.size() == 1) {
      for (int64_t item = first; item < count; ++item) take(item, make(item));
    } else {
      hand_out(ranks, first, count, as_text(make),
               [&](int64_t item, const std::string& text) { take(item, from_text(text)); });
    }
  } catch (const ClassifierChanged& changed) {
    file.append_void(changed.what());
    throw Error("{}: its answers changed while it was certified; the table is void",
                job.subject.model_path.string());
  } catch (const Interrupted&) {
    throw Interrupted{"interrupted; continue with --resume"};
  }
}

MakeRows rows_of_items(const CertificationJob& job) {
  return [&job, items = Items(job)](int64_t item) {
    return certify_wave(job, items.begin(item), items.end(item));
  };
}

void certify_rest(const CertificationJob& job, const Context& context, CertificateFile& file) {
  const Items items(job);
  const auto done = static_cast<int64_t>(file.rows().size());
  const auto progress = begin_progress(context, "certify", done, items.images);
  int64_t correct = 0;
  for (const CertificateRow& row : file.rows()) correct += row.correct();
  const auto take = [&](int64_t item, const Rows& rows) {
    // An item that was interrupted is made again; its first rows are in the table already.
    for (int64_t i = std::max(done, items.begin(item)); i < items.end(item); ++i) {
      file.append(rows[i - items.begin(item)]);
      correct += file.rows().back().correct();
      progress->step(fmt::format(
          "correct {:.1f}%", 100.0 * static_cast<double>(correct) / static_cast<double>(i + 1)));
    }
  };
  const int64_t first = done == items.images ? items.count() : done / items.at_once;
  make_and_take(job, ranks_of(context), first, items.count(), rows_of_items(job), take, file);
}

// The rows that more votes than before may decide, in waves of rows with equally many votes. All
// ranks have the same.
class Undecided {
 public:
  Undecided(const CertificationJob& job, const CertificateFile* file, Ranks& ranks) {
    if (job.subject.experiment.certify.rule() != VoteRule::kRadii) return;
    Rows undecided;
    if (file) undecided = undecided_rows(file->rows(), job.subject.experiment.certify.n);
    share(undecided, ranks);
    const size_t at_once = Items(job).at_once;
    for (CertificateRow& row : undecided) {
      const auto votes = [](const CertificateRow& r) { return r.certificate.counts.n; };
      const bool joins = !waves_.empty() && waves_.back().size() < at_once &&
                         votes(waves_.back().front()) == votes(row);
      if (!joins) waves_.emplace_back();
      waves_.back().push_back(std::move(row));
      ++rows_;
    }
  }

  int64_t rows() const { return rows_; }
  int64_t waves() const { return std::ssize(waves_); }
  MakeRows rows_of_waves(const CertificationJob& job) const {
    return [this, &job](int64_t wave) { return continue_wave(job, waves_[wave]); };
  }

 private:
  // Gives all ranks the rows of rank 0.
  static void share(Rows& rows, Ranks& ranks) {
    if (ranks.size() == 1) return;
    std::string text;
    for (const CertificateRow& row : rows) text += format_row(row);
    ranks.broadcast(text);
    rows = from_text(text);
  }

  std::vector<std::vector<CertificateRow>> waves_;
  int64_t rows_ = 0;
};

void continue_rows(const CertificationJob& job, const Undecided& undecided, const Context& context,
                   CertificateFile& file) {
  if (undecided.rows() == 0) return;
  const auto progress = begin_progress(context, "continue", 0, undecided.rows());
  const auto take = [&](int64_t, const Rows& rows) {
    file.replace(rows);
    for (size_t i = 0; i < rows.size(); ++i) progress->step("");
  };
  make_and_take(job, ranks_of(context), 0, undecided.waves(), undecided.rows_of_waves(job), take,
                file);
}

std::unique_ptr<CertificateFile> open_table(const CertificationJob& job, const fs::path& table,
                                            bool resume, const Context& context) {
  nlohmann::json provenance = build_provenance();
  provenance["threads"] = thread_count(context);
  if (ranks_of(context).size() > 1) provenance["ranks"] = ranks_of(context).size();
  nlohmann::json sidecar = {{"classes", job.subject.class_names},
                            {"model", job.subject.model_path.string()},
                            {"data_root", job.subject.experiment.data.root},
                            {"values", job.data.image(0).count()},
                            {"provenance", provenance}};
  if (job.identity.members) sidecar["members"] = describe_members(job.subject);
  auto file = std::make_unique<CertificateFile>(table, job.identity, sidecar, resume);
  check_is_beginning(file->rows(), job, table);
  return file;
}

// `seed` on the command line sets certify.seed. A random one is drawn here, so that all ranks get
// the same.
Overrides settle_seed(Overrides overrides) {
  for (size_t i = 0; i < overrides.size(); ++i) {
    auto& [key, value] = overrides[i];
    if (key != "seed") continue;
    if (value == "random") value = std::to_string(random_seed());
    overrides.emplace_back("certify.seed", std::string(value));
  }
  return overrides;
}

// Throws an Error, before any vote is drawn, if the certificates could not be certified against
// these options.
void check_against(const AgainstOptions& against, const CertificationJob& job) {
  if (!against.asked()) return;
  if (job.identity.groups) {
    throw Error("{}: is of several groups, which are not certified against given classes",
                job.subject.model_path.string());
  }
  find_avoidance(against, job.subject.class_names, *job.identity.classes);
  if (job.identity.rule() != VoteRule::kRadii) return;
  throw Error("--radii: not with --against and its like, which need a fixed number of votes");
}

nlohmann::json describe_job(const CertifyArguments& a, const Overrides& overrides) {
  return {{"kind", "certify"},
          {"path", a.path},
          {"shard", a.shard},
          {"with", a.with},
          {"overrides", overrides}};
}

}  // namespace

fs::path certify(const CertifyArguments& a, const Overrides& given, const Context& context) {
  const Overrides overrides = settle_seed(given);
  check_context(context);
  check_place_of_table(a);
  Ranks& ranks = ranks_of(context);
  announce_job(ranks, describe_job(a, overrides));
  const CertificationJob job = load_together(a, overrides, context);
  do_together(ranks, [&] { check_against(a.against, job); });
  const fs::path table = a.out.empty() ? table_path(a.path, "certificates") : fs::path(a.out);
  std::unique_ptr<CertificateFile> file;
  do_together(ranks, [&] { file = open_table(job, table, a.resume, context); });
  const Undecided undecided(job, file.get(), ranks);
  do_together(ranks, [&] { continue_rows(job, undecided, context, *file); });
  do_together(ranks, [&] { certify_rest(job, context, *file); });
  const Experiment& e = job.subject.experiment;
  if (ranks.leads() && e.log.tensorboard && fs::is_directory(a.path) && a.out.empty()) {
    write_certificate_events(a.path, e.train.rounds, file->rows());
  }
  return table;
}

void certify_in_hand(const ClassifierInHand& classifier, const ImagesInHand& images,
                     const CertificationOptions& options, const fs::path& table, bool resume,
                     const Context& context) {
  check_context(context);
  const CertificationJob job = job_in_hand(classifier, images, options);
  const auto file = open_table(job, table, resume, context);
  continue_rows(job, Undecided(job, file.get(), ranks_of(context)), context, *file);
  certify_rest(job, context, *file);
}

void work_on_certification(const nlohmann::json& announced, const Context& context) {
  Ranks& ranks = ranks_of(context);
  const CertifyArguments a{
      .path = announced["path"], .shard = announced["shard"], .with = announced["with"]};
  const CertificationJob job = load_together(a, announced["overrides"].get<Overrides>(), context);
  do_together(ranks, [] {});  // rank 0 runs check_against()
  do_together(ranks, [] {});  // rank 0 opens the table
  const Undecided undecided(job, nullptr, ranks);
  do_together(ranks, [&] {
    if (undecided.rows() > 0) work_on_items(ranks, as_text(undecided.rows_of_waves(job)));
  });
  do_together(ranks, [&] { work_on_items(ranks, as_text(rows_of_items(job))); });
}

bool is_certified(const fs::path& run, TestSets& test_sets, const Context& context) {
  const fs::path table = table_path(run, "certificates");
  if (!fs::exists(table)) return false;
  const CertificateIdentity there = read_identity(table);
  const CertificationJob job = load_job({run.string()}, {}, context, test_sets);
  const Experiment& e = job.subject.experiment;
  CertificateIdentity wanted = job.identity;
  if (!there.subject) {  // a complete table of an earlier version counts as certified
    wanted.subject = std::nullopt;
    wanted.run_seed = std::nullopt;
    wanted.seed = certified_seed(e);
  }
  // A table of a fixed number of votes states neither radii nor a plan.
  if (wanted.rule() != there.rule() || !wanted.stated_difference(there).empty()) return false;
  const std::vector<CertificateRow> rows = read_certificates(table);
  return there.images == std::ssize(rows) && undecided_rows(rows, e.certify.n).empty();
}

}  // namespace fedsmooth::jobs
