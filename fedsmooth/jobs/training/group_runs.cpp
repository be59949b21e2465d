#include "fedsmooth/jobs/training/group_runs.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/federated/objectives/objective.h"
#include "fedsmooth/records/certificate_identity.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// Throws the first Error of a run or, if there is none, Interrupted if a run was interrupted.
void rethrow_first(const std::vector<TrainArguments>& runs,
                   const std::vector<std::exception_ptr>& thrown) {
  std::exception_ptr interrupted;
  for (size_t i = 0; i < thrown.size(); ++i) {
    if (!thrown[i]) continue;
    try {
      std::rethrow_exception(thrown[i]);
    } catch (const Interrupted&) {
      interrupted = thrown[i];
    } catch (const Error& error) {
      throw Error("{}: {}", runs[i].folder.filename().string(), error.what());
    }
  }
  if (interrupted) std::rethrow_exception(interrupted);
}

void train_those_left(const std::vector<Experiment>& experiments, const TrainArguments& all,
                      const Context& context) {
  std::vector<TrainArguments> left;
  for (const Experiment& e : experiments) {
    const fs::path folder = group_folder(all.folder, e.groups.number);
    if (fs::exists(folder / "DONE")) {
      start_run(folder, e, all.resume);  // throws if the experiment differs
    } else {
      left.push_back({e, folder, all.resume, all.on_round, all.federation});
    }
  }
  if (!left.empty()) rethrow_first(left, train_together(left, context));
}

nlohmann::json provenance_of(const fs::path& first_group) {
  const fs::path file = first_group / "provenance.json";
  const nlohmann::json group = parse_json_object(read_file(file), file.string());
  nlohmann::json provenance = {
      {"version", version()}, {"commit", commit()}, {"finished", utc_now()}};
  for (const char* key : {"device", "threads", "ranks", "data_sha256"}) {
    if (group.contains(key)) provenance[key] = group[key];
  }
  return provenance;
}

void finish(const TrainArguments& run) {
  std::vector<std::string> sha256s;
  for (int64_t g = 1; g <= run.experiment.groups.count; ++g) {
    const fs::path model = group_folder(run.folder, g) / "model.safetensors";
    sha256s.push_back(sha256(read_file(model)));
  }
  nlohmann::json provenance = provenance_of(group_folder(run.folder, 1));
  provenance["groups"] = sha256s;
  provenance["model_sha256"] = digest_groups(sha256s);
  provenance["certificate_seed"] = seed_json(random_seed());
  write_file(run.folder / "provenance.json", dump_json_lines(provenance));
  write_file(run.folder / "DONE", "");
}

// Returns the result of the whole run; its loss is the mean over the groups.
TrainedRun describe(const TrainArguments& run, bool is_new) {
  TrainedRun trained{is_new, run.experiment.train.rounds, 0,
                     trained_sha256(run.folder).value_or("")};
  const int64_t groups = run.experiment.groups.count;
  for (int64_t g = 1; g <= groups; ++g) {
    const std::vector<RoundRow> rows = read_rounds(group_folder(run.folder, g) / "rounds.tsv");
    if (!rows.empty()) trained.loss += rows.back().loss / static_cast<double>(groups);
  }
  return trained;
}

}  // namespace

void check_groups(const Experiment& e) {
  const int64_t groups = e.groups.count;
  if (e.groups.number > groups) {
    throw Error("groups.number={}: groups.count is {}", e.groups.number, groups);
  }
  if (groups == 1) return;
  if (e.train.mode == Mode::kCentralized) {
    throw Error("groups.count={}: train.mode=\"centralized\" has no clients", groups);
  }
  if (e.partition.kind == PartitionKind::kShards) {
    throw Error(
        "groups.count={}: with partition.kind=\"shards\" a client's images depend on how many "
        "clients there are, so that one more changes every group",
        groups);
  }
  const Objective& objective = objective_of(e.train.method);
  if (reads(objective, "teacher")) {
    throw Error("groups.count={}: the teacher of train.method={:?} would be shared by all groups",
                groups, objective.name);
  }
  if (objective.table != nullptr) {
    throw Error(
        "groups.count={}: train.method={:?} draws by a table of all training images, which "
        "groups must not share",
        groups, objective.name);
  }
  if (e.certify.radius != RadiusKind::kOneSided) {
    throw Error("groups.count={}: groups are certified with certify.radius=\"one-sided\"", groups);
  }
}

void refuse_groups_on_shared_nodes(const Experiment& e) {
  if (e.groups.count == 1) return;
  throw Error(
      "groups.count={}: not on nodes that share the clients, as one that has clients of several "
      "groups reaches all of their models; use private nodes, of one client each",
      e.groups.count);
}

Experiment experiment_of_group(const Experiment& experiment, int64_t number) {
  Experiment e = experiment;
  e.groups.number = number;
  e.certify.malicious = 0;  // one network is not certified against malicious clients
  return e;
}

TrainedRun train_groups(const TrainArguments& run, const Context& context) {
  const bool is_new = !fs::exists(run.folder / "DONE");
  if (!is_new) {
    start_run(run.folder, run.experiment, run.resume);  // throws if the experiment differs
    return describe(run, is_new);
  }
  fs::create_directories(run.folder);
  const FolderLock lock(run.folder);
  remove_unfinished(run.folder, {"experiment.toml", "provenance.json", "DONE"});
  start_run(run.folder, run.experiment, run.resume);
  std::vector<Experiment> experiments;
  for (int64_t g = 1; g <= run.experiment.groups.count; ++g) {
    experiments.push_back(experiment_of_group(run.experiment, g));
  }
  train_those_left(experiments, run, context);
  finish(run);
  return describe(run, is_new);
}

}  // namespace fedsmooth::jobs
