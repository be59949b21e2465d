#include "fedsmooth/config/experiment.h"

#include <algorithm>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/config/experiment_toml.h"
#include "fedsmooth/config/sweep.h"

namespace fedsmooth {
namespace {

constexpr int64_t kMaxDots = 4096;

const Field* find_field(const std::vector<Field>& all, const std::string& key) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Field& field) { return field.key == key; });
  return found == all.end() ? nullptr : &*found;
}

// Returns all prefixes of keys: "train" and "train.local" for the key train.local.steps.
std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const std::string& key : experiment_keys()) {
    for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
      names.push_back(key.substr(0, dot));
    }
  }
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string suggestion(const std::string& key, const std::vector<std::string>& candidates) {
  std::string near = nearest(key, candidates);
  if (near.empty()) near = key_ending_in(key);
  return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

Error unknown_key(const std::string& key, const std::vector<std::string>& candidates) {
  return Error("unknown key {:?}{}", key, suggestion(key, candidates));
}

void read_table(const toml::table& table, const std::string& prefix, const std::string& name,
                Experiment& experiment) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    const bool section = contains(section_names(), path);
    if (section && node.is_table()) {
      read_table(*node.as_table(), path + ".", name, experiment);
      continue;
    }
    try {
      if (section) throw Error("{}: must be a table", path);
      if (node.is_table() && !contains(experiment_keys(), path))
        throw unknown_key(path, section_names());
      set_from_toml(experiment, path, node);
    } catch (const Error& error) {
      throw Error("{}:{}: {}", name, key.source().begin.line, error.what());
    }
  }
}

// toml++ recurses into dotted keys (a.a.a.a) without a limit. Counting all dots of the text is
// crude but sufficient: a ResNet-110 written as layers has only about 450.
void refuse_deep_keys(std::string_view text, const std::string& where) {
  const int64_t dots = std::count(text.begin(), text.end(), '.');
  if (dots > kMaxDots) throw Error("{}: {} dots, at most {} are allowed", where, dots, kMaxDots);
}

// `defaults` is empty, or has the same keys with their defaults: a default that differs from the
// value is stated in a comment.
std::string format_fields(const std::vector<Field>& fields,
                          const std::vector<Field>& defaults = {}) {
  std::string out, section;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.is_alias) continue;
    const size_t dot = field.key.rfind('.');
    const std::string head = dot == std::string::npos ? "" : field.key.substr(0, dot);
    if (head != section) out += fmt::format("\n[{}]\n", section = head);
    const std::string shown = field.show();
    const std::string standard = defaults.empty() ? shown : defaults[i].show();
    const std::string mark = shown == standard ? "" : fmt::format("  # default: {}", standard);
    out += fmt::format("{} = {}{}\n", field.key.substr(dot + 1), shown, mark);
  }
  return out;
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& name) {
  if (text.find('\0') != std::string_view::npos)
    throw Error("{}: is a binary file, not one of an experiment", name);
  refuse_deep_keys(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');  // the message may quote line ends
    throw Error("{}:{}: {}", name, error.source().begin.line, what);
  }
}

void set_from_toml(Experiment& experiment, const std::string& key, const toml::node& node) {
  const std::vector<Field> all = experiment_fields(experiment);
  const Field* field = find_field(all, key);
  if (field == nullptr) throw unknown_key(key, experiment_keys());
  try {
    field->set(node);
  } catch (const Error& error) {
    throw Error("{}: {}", key, error.what());
  }
}

std::string key_ending_in(const std::string& word) {
  for (const std::string& key : experiment_keys()) {
    if (key.ends_with("." + word)) return key;
  }
  return {};
}

double certified_sigma(const Experiment& e) {
  return e.certify.sigma > 0 ? e.certify.sigma : e.smoothing.sigma;
}

uint64_t certified_seed(const Experiment& e) { return e.certify.seed.value_or(e.seed); }

void check_certification(const Experiment& e) {
  check_certify_options(e.certify, certified_sigma(e), *e.certify.noise);
}

Experiment experiment_from_toml(const toml::table& table, const std::string& name,
                                Experiment base) {
  read_table(table, "", name, base);
  return base;
}

Experiment parse_experiment(std::string_view text, const std::string& name, Experiment base) {
  const toml::table table = parse_toml(text, name);
  if (table.contains("sweep")) {
    throw Error("{}: has a [sweep] of {} experiments; run them by `fedsmooth sweep {}`", name,
                expand(parse_sweep(text, name)).size(), shell_word(name));
  }
  return experiment_from_toml(table, name, std::move(base));
}

Experiment read_experiment(const std::filesystem::path& path) {
  return parse_experiment(read_file(path), path.string());
}

std::string format_experiment(const Experiment& experiment) {
  Experiment copy = experiment;
  return format_fields(experiment_fields(copy));
}

std::string format_with_defaults(const Experiment& experiment) {
  Experiment copy = experiment, standard;
  return format_fields(experiment_fields(copy), experiment_fields(standard));
}

std::string format_training(const Experiment& experiment) {
  Experiment copy = experiment;
  return format_fields(training_fields(copy));
}

std::string training_difference(const Experiment& there, const Experiment& here) {
  Experiment a = there, b = here;
  const std::vector<Field> old = training_fields(a), now = training_fields(b);
  for (size_t i = 0; i < old.size(); ++i) {
    if (old[i].is_alias || old[i].show() == now[i].show()) continue;
    return fmt::format("{} is {} there, {} here", old[i].key, old[i].show(), now[i].show());
  }
  return {};
}

void set_key(Experiment& experiment, const std::string& key, const std::string& value) {
  const std::vector<Field> all = experiment_fields(experiment);
  const Field* field = find_field(all, key);
  if (field == nullptr) throw Error("--{}: unknown key{}", key, suggestion(key, experiment_keys()));
  // The value is parsed as "value = ...", in which a second line would be a second key.
  if (value.find_first_of("\r\n") != std::string::npos || !is_utf8(value)) {
    throw Error("--{}={:?}: must be one line of UTF-8", key, value);
  }
  refuse_deep_keys(value, "--" + key);
  const bool quoted = !value.empty() && (value[0] == '"' || value[0] == '\'');
  toml::table table;
  table.insert_or_assign("value", value);
  if (!field->is_text || quoted) {
    try {
      table = toml::parse("value = " + value);
    } catch (const toml::parse_error&) {
      // A value that is not TOML, such as a bare word, is taken as a string.
    }
  }
  try {
    field->set(*table.get("value"));
  } catch (const Error& error) {
    throw Error("--{}={}: {}", key, value, error.what());
  }
}

void apply_overrides(Experiment& experiment, const Overrides& overrides) {
  for (const auto& [key, value] : overrides) set_key(experiment, key, value);
}

std::string show_key(const Experiment& experiment, const std::string& key) {
  Experiment copy = experiment;
  const std::vector<Field> all = experiment_fields(copy);
  const Field* field = find_field(all, key);
  check(field != nullptr, "show_key: no key {}", key);
  return field->show();
}

std::vector<std::string> experiment_keys() {
  Experiment any;
  std::vector<std::string> keys;
  for (const Field& field : experiment_fields(any)) keys.push_back(field.key);
  return keys;
}

std::vector<std::string> keys_of_files() {
  Experiment any;
  std::vector<std::string> keys;
  for (const Field& field : experiment_fields(any)) {
    if (field.names_file) keys.push_back(field.key);
  }
  return keys;
}

}  // namespace fedsmooth
