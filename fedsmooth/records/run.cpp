#include "fedsmooth/records/run.h"

#include <charconv>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/model/safetensors.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExperimentFile = "experiment.toml";
constexpr const char* kVelocity = "client_velocity";
constexpr const char* kChecksum = "checksum";      // of the file without this field
constexpr const char* kExperiment = "experiment";  // the keys that training reads, as TOML

fs::path checkpoint_path(const Run& run) { return run.folder / "checkpoint" / "state.safetensors"; }

Weights take_weights(const Safetensors& content, const std::string& prefix, const Network& network,
                     const std::string& name) {
  Weights weights;
  for (const Parameter& p : parameters(network)) {
    const auto found = content.tensors.find(prefix + p.name);
    if (found == content.tensors.end() || found->second.sizes() != p.shape) {
      throw Error("{}: tensor {}{} is missing or has another shape", name, prefix, p.name);
    }
    weights.push_back(found->second);
  }
  return weights;
}

// Returns everything in a state but the global weights, by name.
NamedWeights kept_weights(const ServerState& state) {
  NamedWeights all = state.kept;
  if (!state.velocity.empty()) all[kVelocity] = state.velocity;
  return all;
}

// Whether training has left more than its experiment.
bool has_results(const Run& run) {
  const auto has = [&](const char* file) { return fs::exists(run.folder / file); };
  return has_checkpoint(run) || run.done() || has("model.safetensors") || has("provenance.json") ||
         has("certificates.tsv");
}

}  // namespace

bool has_checkpoint(const Run& run) { return fs::exists(checkpoint_path(run)); }

Run start_run(const fs::path& folder, const Experiment& experiment, bool resume) {
  const fs::path file = folder / kExperimentFile;
  const std::string text = format_experiment(experiment);
  if (!fs::exists(file)) {
    if (fs::exists(folder) && !(fs::is_directory(folder) && fs::is_empty(folder))) {
      throw Error("{}: exists and is not a run; choose another --out", folder.string());
    }
    write_file(file, text);
    return {folder, experiment};
  }
  const Run begun = {folder, experiment};
  const Experiment before = read_experiment(file);
  const std::string old = format_experiment(before);
  if (read_file(file) == old && !has_results(begun)) {
    write_file(file, text);
    return begun;
  }
  const std::string difference = training_difference(before, experiment);
  if (!difference.empty()) {
    throw Error("{}: is another experiment: {}", folder.string(), difference);
  }
  if (!resume) {
    throw Error("{}: exists; continue it with --resume or choose another --out", folder.string());
  }
  if (old != text) write_file(file, text);  // [certify] or [log] differs
  return begun;
}

void keep_drawn_seed(Experiment& experiment, const fs::path& folder) {
  const fs::path file = folder / kExperimentFile;
  if (experiment.seed_is_random && fs::exists(file)) experiment.seed = read_experiment(file).seed;
}

std::optional<fs::path> run_at(const fs::path& path) {
  if (fs::is_directory(path)) {
    return fs::exists(path / kExperimentFile) ? std::optional(path) : std::nullopt;
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const bool begun = path.filename() == kExperimentFile && fs::exists(folder / "rounds.tsv");
  return begun ? std::optional(folder) : std::nullopt;
}

Run open_run(const fs::path& folder) {
  if (!fs::exists(folder / kExperimentFile)) {
    throw Error("{}: no run here; `fedsmooth train` writes one", folder.string());
  }
  const Run run{folder, read_experiment(folder / kExperimentFile)};
  if (!run.done()) {
    throw Error("{}: unfinished (no DONE file); continue with `fedsmooth train --resume {}`",
                folder.string(), shell_word(folder.string()));
  }
  return run;
}

fs::path group_folder(const fs::path& run, int64_t number) {
  return run / fmt::format("group-{:02}", number);
}

bool is_run_of_groups(const fs::path& folder) {
  const fs::path file = folder / "experiment.toml";
  return fs::exists(file) && read_experiment(file).groups.are_trained();
}

uint64_t drawn_certificate_seed(const fs::path& folder) {
  const std::string file = (folder / "provenance.json").string();
  const auto provenance = parse_json_object(read_file(file), file);
  const auto seed = find_seed(provenance, "certificate_seed", file);
  if (!seed) throw Error("{}: has no certificate_seed; give --certify.seed", file);
  return *seed;
}

namespace {

// Returns the SHA-256 that provenance.json records under `key`; none if it records none.
std::optional<std::string> recorded_sha256(const fs::path& folder, const std::string& key) {
  const fs::path file = folder / "provenance.json";
  if (!fs::exists(file)) return std::nullopt;
  const auto provenance = parse_json_object(read_file(file), file.string());
  return find_string(provenance, key, file.string());
}

}  // namespace

std::optional<std::string> trained_sha256(const fs::path& folder) {
  return recorded_sha256(folder, "model_sha256");
}

std::optional<std::string> trained_data_sha256(const fs::path& folder) {
  return recorded_sha256(folder, "data_sha256");
}

std::map<std::string, std::string> digest_history(const fs::path& folder) {
  std::map<std::string, std::string> digests;
  for (const std::string stem : {"clients", "rounds"}) {
    const fs::path table = folder / (stem + ".tsv");
    if (fs::exists(table)) digests[stem + "_sha256"] = sha256(read_file(table));
  }
  return digests;
}

void check_history(const fs::path& folder) {
  for (const auto& [key, found] : digest_history(folder)) {
    if (recorded_sha256(folder, key).value_or(found) == found) continue;
    throw Error("{}: is not the table that this run wrote; provenance.json has another {}",
                (folder / (key.substr(0, key.find('_')) + ".tsv")).string(), key);
  }
}

void copy_training(const fs::path& from, const Run& to) {
  const auto copy = [&](const char* file) { write_file(to.folder / file, read_file(from / file)); };
  if (to.experiment.groups.are_trained()) {
    for (int64_t g = 1; g <= to.experiment.groups.count; ++g) {
      const fs::path group = group_folder(from, g), here = group_folder(to.folder, g);
      write_file(here / "experiment.toml", read_file(group / "experiment.toml"));
      copy_training(group, {here, read_experiment(here / "experiment.toml")});
    }
  } else {
    for (const char* file : {"clients.tsv", "rounds.tsv", "model.safetensors"}) copy(file);
  }
  copy("provenance.json");
  write_file(to.folder / "DONE", "");
}

Provenance bind_to_training(Provenance origin, const Experiment& experiment) {
  origin[kExperiment] = format_training(experiment);
  return origin;
}

Provenance check_is_of_training(Provenance metadata, const Experiment& here,
                                const std::string& name) {
  const auto text = metadata.find(kExperiment);
  if (text == metadata.end()) return metadata;
  const std::string difference = training_difference(parse_experiment(text->second, name), here);
  if (!difference.empty()) {
    throw Error("{}: is of another experiment: {}; start again with another --out", name,
                difference);
  }
  metadata.erase(text);
  return metadata;
}

void write_checkpoint(const Run& run, const Network& network, const ServerState& state,
                      const Provenance& origin) {
  Safetensors content;
  content.metadata = bind_to_training(origin, run.experiment);
  content.metadata["round"] = std::to_string(state.round);
  const std::vector<Parameter> names = parameters(network);
  for (size_t i = 0; i < names.size(); ++i) {
    content.tensors["global." + names[i].name] = state.global[i];
    for (const auto& [kept, weights] : kept_weights(state)) {
      content.tensors[kept + "." + names[i].name] = weights[i];
    }
  }
  content.metadata[kChecksum] = sha256(format_safetensors(content));
  write_file(checkpoint_path(run), format_safetensors(content));
}

ServerState read_checkpoint(const Run& run, const Network& network, const Provenance& origin) {
  const fs::path path = checkpoint_path(run);
  Safetensors content = parse_safetensors(read_file(path), path.string());
  const auto checksum = content.metadata.extract(kChecksum);
  if (!checksum.empty() && checksum.mapped() != sha256(format_safetensors(content))) {
    throw Error("{}: is damaged; start again with another --out", path.string());
  }
  content.metadata =
      check_is_of_training(std::move(content.metadata), run.experiment, path.string());
  ServerState state;
  const auto round = content.metadata.find("round");
  const std::string text = round == content.metadata.end() ? "" : round->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), state.round);
  if (text.empty() || parsed.ec != std::errc() || state.round < 0 ||
      state.round > run.experiment.train.rounds) {
    throw Error("{}: does not say which round it is of", path.string());
  }
  for (const auto& [what, here] : origin) {
    const auto there = content.metadata.find(what);
    if (there != content.metadata.end() && there->second != here) {
      throw Error("{}: was made with the {} {}, here it is {}; start again with another --out",
                  path.string(), what, there->second, here);
    }
  }
  state.global = take_weights(content, "global.", network, path.string());
  const ServerOptions& server = run.experiment.train.server;
  for (const std::string& kept : names_kept(server, state.round)) {
    state.kept[kept] = take_weights(content, kept + ".", network, path.string());
  }
  if (run.experiment.train.mode == Mode::kCentralized && state.round > 0) {
    if (!content.tensors.contains(fmt::format("{}.{}", kVelocity, parameters(network)[0].name))) {
      throw Error(
          "{}: is of an earlier version, which lost a centralized run's momentum after every "
          "round; start again with another --out",
          path.string());
    }
    state.velocity = take_weights(content, fmt::format("{}.", kVelocity), network, path.string());
  }
  const size_t expected = state.global.size() * (1 + kept_weights(state).size());
  if (content.tensors.size() != expected) {
    throw Error("{}: has {} tensors, server.optimizer={:?} has {}; start again with another --out",
                path.string(), content.tensors.size(), server.optimizer, expected);
  }
  return state;
}

}  // namespace fedsmooth
