#include "fedsmooth/jobs/load_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/jobs/pages/kept_runs.h"
#include "fedsmooth/records/attack_identity.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/run.h"
#include "fedsmooth/report/history.h"
#include "fedsmooth/report/names.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns the name of a table's run: that of its folder, or of a table with a name of its own.
std::string run_name(const fs::path& table) {
  const fs::path folder = fs::absolute(table).parent_path().filename();
  if (table.filename() == "certificates.tsv") return folder.string();
  // A table of another program may be called noise_0.25.
  return table.extension() == ".tsv" ? table.stem().string() : table.filename().string();
}

void append_members(const json& object, std::vector<std::pair<std::string, std::string>>& out) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    out.emplace_back(key, value.is_string() ? value.get<std::string>() : dump_json(value));
  }
}

// Returns the run folder that a path names; empty if it names a table outside a run.
fs::path run_folder(const fs::path& path) {
  if (fs::is_directory(path)) return path;
  return path.filename() == "certificates.tsv" ? fs::absolute(path).parent_path() : fs::path();
}

// Returns whether a table of attacks and one of certificates are about the same classifier and
// data, as far as they state them.
bool go_together(const fs::path& attacks, const fs::path& certificates) {
  return !fs::exists(sidecar_path(attacks)) || !fs::exists(sidecar_path(certificates)) ||
         about_the_same(read_attack_identity(attacks), read_identity(certificates));
}

void load_training(const fs::path& folder, std::vector<RoundRow>& rounds,
                   std::vector<ClientRow>& clients) {
  check_history(folder);
  if (fs::exists(folder / "rounds.tsv")) rounds = read_rounds(folder / "rounds.tsv");
  if (fs::exists(folder / "clients.tsv")) clients = read_clients(folder / "clients.tsv");
}

// Joins the training of a run's groups: all clients, and the means of each round's values.
void load_groups(const fs::path& folder, RunRecord& run) {
  std::vector<std::vector<RoundRow>> rounds;
  for (int64_t g = 1; fs::exists(group_folder(folder, g) / "experiment.toml"); ++g) {
    std::vector<ClientRow> clients;
    load_training(group_folder(folder, g), rounds.emplace_back(), clients);
    run.clients.insert(run.clients.end(), clients.begin(), clients.end());
  }
  std::ranges::sort(run.clients, {}, &ClientRow::client);
  run.rounds = mean_of_groups(rounds);
  run.groups = std::ssize(rounds);
}

// Loads conformal.json, unless it is of another model than the run's.
void load_conformal(const fs::path& folder, RunRecord& run) {
  const fs::path file = folder / "conformal.json";
  if (!fs::exists(file)) return;
  const ConformalCalibration found = read_conformal(file);
  const std::string& model = *found.subject.model_sha256;
  if (trained_sha256(folder).value_or(model) == model) run.conformal = found;
}

void load_history(const fs::path& folder, RunRecord& run) {
  if (fs::exists(folder / "experiment.toml"))
    run.experiment = read_file(folder / "experiment.toml");
  run.unfinished = !run.experiment.empty() && !fs::exists(folder / "DONE");
  if (is_run_of_groups(folder)) {
    load_groups(folder, run);
  } else {
    load_training(folder, run.rounds, run.clients);
  }
  load_conformal(folder, run);
  const fs::path attacks = folder / "attack.tsv";
  if (fs::exists(attacks) && go_together(attacks, folder / "certificates.tsv")) {
    run.attacks = read_attacks(attacks);
    if (fs::exists(sidecar_path(attacks))) {
      run.attacked_base = read_attack_identity(attacks).base.value_or("");
    }
  }
}

// Returns the number of values in an image of the table's data; 0 if that is unknown.
int64_t values_of(const json& sidecar, const CertificateIdentity& identity,
                  const std::string& name) {
  if (const auto stated = find_count(sidecar, "values", name)) return *stated;
  return identity.data == "cifar10" || identity.data == "shapes" ? 3 * 32 * 32
                                                                 : 0;  // tables of 0.1
}

void load_sidecar(const fs::path& table, RunRecord& run) {
  if (!fs::exists(sidecar_path(table))) return;
  const json sidecar = read_sidecar(table);
  if (sidecar.contains("classes") && sidecar["classes"].is_array()) {
    for (const json& name : sidecar["classes"]) {
      run.class_names.push_back(name.is_string() ? name.get<std::string>() : dump_json(name));
    }
  }
  run.identity = read_identity(table);
  const auto rows = static_cast<int64_t>(run.rows.size());
  const int64_t images = run.identity.images.value_or(rows);
  if (rows < images) {
    const std::string missing = fmt::format(" ({} of {} images)", rows, images);
    run.name += missing;
    run.label += missing;
  }
  run.values = values_of(sidecar, run.identity, sidecar_path(table).string());
  append_members(run.identity.to_json(), run.provenance);
  if (sidecar.contains("provenance")) append_members(sidecar["provenance"], run.provenance);
}

// Fills in what a published table does not state. p_lower is the probability that the law requires
// for the radius, which is one-sided.
void take_options(const TableOptions& o, std::vector<CertificateRow>& rows) {
  for (CertificateRow& row : rows) {
    row.sigma = o.sigma;
    row.alpha = o.alpha;
    row.certificate.counts.n = o.n;
    if (o.sigma > 0 && !row.abstained()) {
      row.certificate.p_lower = row.law().needed_probability(o.sigma, row.certificate.radius);
    }
  }
}

void take_norm(const TableOptions& o, const fs::path& table, RunRecord& run) {
  run.norm = parse_norm(o.norm);
  if (run.values != 0 && o.values != 0 && run.values != o.values) {
    throw Error("--values={}: images of {} have {}", o.values, table.string(), run.values);
  }
  if (run.values == 0) run.values = o.values;
  const Norm certified_in = run.certified() ? run.rows.front().law().norm : Norm::kL2;
  if (run.norm == certified_in) return;
  if (run.norm == Norm::kLinf && run.certified() && run.values == 0) {
    throw Error("{}: does not say how many values an image has; give --values, 3072 for CIFAR-10",
                table.string());
  }
  for (CertificateRow& row : run.rows) {
    row.certificate.radius = radius_in(run.norm, row.certificate.radius, run.values);
  }
  run.attacks.clear();
}

bool is_run(const fs::path& folder) {
  return fs::exists(folder / "experiment.toml") || fs::exists(folder / "certificates.tsv") ||
         fs::exists(folder / "rounds.tsv");
}

// Returns the table of a run's rounds; for a run of groups, that of the first one.
fs::path rounds_of(const fs::path& run) {
  const fs::path group = group_folder(run, 1);
  return (fs::exists(group) ? group : run) / "rounds.tsv";
}

// Returns whether a table has more than its header.
bool has_rows(const fs::path& table) {
  if (!fs::exists(table)) return false;
  const std::string text = read_file(table);
  return text.find('\n') + 1 < text.size();
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool can_be_read(const std::string& path) {
  return fs::exists(path) || find_archived(path).has_value();
}

// Returns the length of NAME in NAME=PATH; 0 if there is none. NAME and PATH may contain a =.
size_t name_length(const std::string& argument) {
  if (can_be_read(argument)) return 0;
  for (size_t i = 1; i < argument.size(); ++i) {
    if (argument[i] == '=' && can_be_read(argument.substr(i + 1))) return i;
  }
  return 0;
}

}  // namespace

void check_table_options(const TableOptions& o) {
  parse_norm(o.norm);
  if (o.values < 0) throw Error("--values={}: must be positive", o.values);
  if (o.n < 0 || o.n > int64_t{1} << 32) throw Error("--n={}: must be from 1 to 2^32", o.n);
  if (!(o.sigma >= 0 && std::isfinite(o.sigma))) {
    throw Error("--sigma={}: must be positive", o.sigma);
  }
  if (o.alpha != 0 && !is_level(o.alpha)) throw Error("--alpha={}: {}", o.alpha, kLevels);
}

fs::path find_table(const fs::path& path) {
  const fs::path table = fs::is_directory(path) ? path / "certificates.tsv" : path;
  if (const auto archived = find_archived(path)) {
    throw Error("{}: may be in {}; unpack that first, with `tar -xzf`", path.string(),
                archived->archive.string());
  }
  if (!fs::exists(table)) {
    const bool of_run =
        table.filename() == "certificates.tsv" && fs::is_directory(table.parent_path());
    if (of_run && run_at(table.parent_path())) {
      open_run(table.parent_path());  // throws if it is unfinished
    }
    if (!of_run && path.extension() != ".tsv") {
      throw Error(
          "{}: no such file or folder; give a run folder, which `fedsmooth train` writes, or a "
          "table, which `fedsmooth certify` writes",
          path.string());
    }
    throw Error("{}: no certificates here; `fedsmooth certify {}` writes them", table.string(),
                of_run ? shell_word(table.parent_path().string()) : "RUN_OR_MODEL");
  }
  return table;
}

RunRecord load_run(const fs::path& path, const std::string& name, const TableOptions& options) {
  check_table_options(options);
  if (const auto archived = find_archived(path)) {
    const UnpackedRuns unpacked(*archived);
    return load_run(unpacked.folder() / archived->inside, name, options);
  }
  const fs::path folder = run_folder(path);
  const fs::path table = folder.empty() ? path : folder / "certificates.tsv";
  RunRecord run{name.empty() ? run_name(table) : name};
  run.label = name.empty() ? readable_name(run.name) : name;
  run.path = path.string();
  if (!folder.empty()) load_history(folder, run);
  if (fs::exists(table)) run.rows = read_any_certificates(table);
  if (run.certified() && run.rows.front().published) {
    take_options(options, run.rows);
  } else if (run.certified()) {
    load_sidecar(table, run);
  } else if (run.rounds.empty()) {
    throw Error("{}: has no rows yet", find_table(path).string());
  } else if (fs::exists(folder / "provenance.json")) {
    const fs::path file = folder / "provenance.json";
    append_members(parse_json_object(read_file(file), file.string()), run.provenance);
  }
  take_norm(options, table, run);
  return run;
}

std::vector<RunRecord> load_runs(const std::vector<std::string>& arguments,
                                 const TableOptions& options) {
  std::vector<RunRecord> runs;
  for (const std::string& argument : arguments) {
    const size_t equals = name_length(argument);
    runs.push_back(
        equals == 0 ? load_run(argument, "", options)
                    : load_run(argument.substr(equals + 1), argument.substr(0, equals), options));
  }
  return runs;
}

bool holds_runs(const fs::path& folder) {
  if (!fs::is_directory(folder) || is_run(folder)) return false;
  if (!archive_in(folder).empty()) return true;
  const std::vector<fs::path> folders = folders_in(folder);
  return std::any_of(folders.begin(), folders.end(), is_run);
}

std::vector<std::string> find_runs(const fs::path& folder) {
  std::vector<std::string> runs;
  for (const fs::path& run : folders_in(folder)) {
    if (has_rows(run / "certificates.tsv") || has_rows(rounds_of(run))) {
      runs.push_back(run.string());
    }
  }
  if (runs.empty()) throw Error("{}: no run here has certificates or rounds yet", folder.string());
  return runs;
}

}  // namespace fedsmooth::jobs
