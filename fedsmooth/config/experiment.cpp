#include "fedsmooth/config/experiment.h"

// toml++ 3.3 asserts on headers such as "[}" before its own check refuses them.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/model/network_json.h"

namespace fedsmooth {
namespace {

// One key: how to set it from a TOML value and how to print it. A setter throws an Error that says
// what is wrong with the value; the caller adds where it stands.
struct Field {
  std::string key;
  std::function<void(const toml::node&)> set;
  std::function<std::string()> show;
};

void require(bool condition, const char* what) {
  if (!condition) throw Error("{}", what);
}

double to_double(const toml::node& node) {
  const auto value = node.value<double>();  // integers count too
  require(value && (node.is_floating_point() || node.is_integer()), "must be a number");
  require(std::isfinite(*value), "must be finite");
  return *value;
}

int64_t to_integer(const toml::node& node) {
  require(node.is_integer(), "must be a whole number");
  return *node.value<int64_t>();
}

std::string to_string(const toml::node& node) {
  require(node.is_string(), "must be a string");
  return *node.value<std::string>();
}

// As TOML, which wants a point or an exponent in every floating-point number.
std::string show_double(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// TOML escapes as JSON does, and DEL too.
std::string show_string(const std::string& text) {
  std::string shown = nlohmann::json(text).dump();
  for (size_t i; (i = shown.find('\x7f')) != std::string::npos;) shown.replace(i, 1, "\\u007f");
  return shown;
}

bool is_utf8(const std::string& text) {
  const auto ignore = nlohmann::json::error_handler_t::ignore;
  return nlohmann::json(text).dump(-1, ' ', false, ignore) ==
         nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Field number(std::string key, double& value, std::function<bool(double)> valid, const char* range) {
  return {std::move(key),
          [&value, valid, range](const toml::node& node) {
            const double read = to_double(node);
            require(valid(read), range);
            value = read;
          },
          [&value] { return show_double(value); }};
}

Field count(std::string key, int64_t& value, int64_t low) {
  return {std::move(key),
          [&value, low](const toml::node& node) {
            const int64_t read = to_integer(node);
            require(read >= low, low == 0 ? "must not be negative" : "must be positive");
            value = read;
          },
          [&value] { return fmt::format("{}", value); }};
}

Field text(std::string key, std::string& value) {
  return {std::move(key), [&value](const toml::node& node) { value = to_string(node); },
          [&value] { return show_string(value); }};
}

// A string out of a list, stored as what stands beside it.
template <typename T>
Field choice(std::string key, T& value, std::vector<std::pair<std::string, T>> options) {
  const auto set = [&value, options](const toml::node& node) {
    const std::string read = to_string(node);
    std::vector<std::string> names;
    for (const auto& [name, option] : options) {
      if (name == read) {
        value = option;
        return;
      }
      if (!name.empty()) names.push_back(name);
    }
    throw Error("must be {}", fmt::join(names, ", "));
  };
  const auto show = [&value, options] {
    for (const auto& [name, option] : options) {
      if (option == value) return show_string(name);
    }
    throw std::logic_error("choice: a value without a name");
  };
  return {std::move(key), set, show};
}

Field name_choice(std::string key, std::string& value, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const std::string& name : names) options.emplace_back(name, name);
  return choice(std::move(key), value, std::move(options));
}

Field numbers(std::string key, std::vector<double>& values, bool positive) {
  return {std::move(key),
          [&values, positive](const toml::node& node) {
            require(node.is_array(), "must be a list of numbers");
            std::vector<double> read;
            for (const toml::node& item : *node.as_array()) read.push_back(to_double(item));
            for (const double value : read) require(!positive || value > 0, "must be positive");
            values = read;
          },
          [&values] {
            std::vector<std::string> shown;
            for (const double value : values) shown.push_back(show_double(value));
            return fmt::format("[{}]", fmt::join(shown, ", "));
          }};
}

Field seed_field(std::string key, uint64_t& value) {
  return {std::move(key),
          [&value](const toml::node& node) {
            if (node.is_string() && to_string(node) == "random") {
              value = random_seed();
              return;
            }
            require(node.is_integer() && to_integer(node) >= 0,
                    "must be a whole number >= 0 or \"random\"");
            value = static_cast<uint64_t>(to_integer(node));
          },
          [&value] { return fmt::format("{}", value); }};
}

// Layers in TOML have the same keys as in a model file, so they go through the same reader.
nlohmann::json to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, value] : *table) object[std::string(key.str())] = to_json(value);
    return object;
  }
  if (const auto* array = node.as_array()) {
    nlohmann::json list = nlohmann::json::array();
    for (const toml::node& item : *array) list.push_back(to_json(item));
    return list;
  }
  if (node.is_integer()) return *node.value<int64_t>();
  if (node.is_floating_point()) return *node.value<double>();
  if (node.is_boolean()) return *node.value<bool>();
  if (node.is_string()) return *node.value<std::string>();
  throw Error("holds a date");
}

std::string show_json(const nlohmann::json& value) {
  if (value.is_object()) {
    std::vector<std::string> members;
    for (const auto& [key, item] : value.items()) {
      members.push_back(fmt::format("{} = {}", key, show_json(item)));
    }
    return fmt::format("{{{}}}", fmt::join(members, ", "));
  }
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const nlohmann::json& item : value) items.push_back(show_json(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  return value.is_number_float() ? show_double(value.get<double>()) : value.dump();
}

Field layers_field(std::string key, std::vector<Layer>& layers) {
  return {std::move(key),
          [&layers](const toml::node& node) { layers = layers_from_json(to_json(node), "layers"); },
          [&layers] { return show_json(to_json(layers)); }};
}

bool positive(double x) { return x > 0; }
bool not_negative(double x) { return x >= 0; }
bool probability(double x) { return x > 0 && x < 1; }

// The whole format: every key with its type and range.
std::vector<Field> fields(Experiment& e) {
  std::vector<std::string> models = architecture_names();
  models.insert(models.end(), {"layers", ""});
  return {
      seed_field("seed", e.seed),
      name_choice("data.name", e.data.name, {"cifar10", "image-folder", "shapes"}),
      text("data.root", e.data.root),
      name_choice("model.name", e.model.name, models),
      numbers("model.mean", e.model.mean, false),
      numbers("model.sd", e.model.sd, true),
      layers_field("model.layers", e.model.layers),
      number("smoothing.sigma", e.smoothing.sigma, positive, "must be positive"),
      count("certify.n0", e.certify.n0, 1),
      count("certify.n", e.certify.n, 1),
      number("certify.alpha", e.certify.alpha, probability, "must be between 0 and 1"),
      number("certify.sigma", e.certify.sigma, not_negative, "must not be negative"),
      choice<RadiusKind>(
          "certify.radius", e.certify.radius,
          {{"one-sided", RadiusKind::kOneSided}, {"multiclass", RadiusKind::kMulticlass}}),
      count("certify.every", e.certify.every, 1),
      count("certify.limit", e.certify.limit, 0),
  };
}

const Field* find_field(const std::vector<Field>& all, const std::string& key) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Field& field) { return field.key == key; });
  return found == all.end() ? nullptr : &*found;
}

std::string suggestion(const std::string& key) {
  const std::string near = nearest(key, experiment_keys());
  return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

bool is_section(const std::string& key) {
  const std::vector<std::string> keys = experiment_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& k) { return k.rfind(key + ".", 0) == 0; });
}

void read_table(const toml::table& table, const std::string& prefix, const std::string& name,
                const std::vector<Field>& all) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    const std::string where = fmt::format("{}:{}", name, key.source().begin.line);
    if (const Field* field = find_field(all, path)) {
      try {
        field->set(node);
      } catch (const Error& error) {
        throw Error("{}: {}: {}", where, path, error.what());
      }
    } else if (node.is_table() && is_section(path)) {
      read_table(*node.as_table(), path + ".", name, all);
    } else if (is_section(path)) {
      throw Error("{}: {}: must be a table", where, path);
    } else {
      throw Error("{}: unknown key {:?}{}", where, path, suggestion(path));
    }
  }
}

toml::table parse_toml(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');  // it quotes what it saw, line ends included
    throw Error("{}:{}: {}", name, error.source().begin.line, what);
  }
}

}  // namespace

Experiment parse_experiment(std::string_view text, const std::string& name, Experiment base) {
  read_table(parse_toml(text, name), "", name, fields(base));
  return base;
}

Experiment read_experiment(const std::filesystem::path& path) {
  return parse_experiment(read_file(path), path.string());
}

std::string format_experiment(const Experiment& experiment) {
  Experiment copy = experiment;
  std::string out, section;
  for (const Field& field : fields(copy)) {
    const size_t dot = field.key.rfind('.');
    const std::string head = dot == std::string::npos ? "" : field.key.substr(0, dot);
    if (head != section) out += fmt::format("\n[{}]\n", section = head);
    out += fmt::format("{} = {}\n", field.key.substr(dot + 1), field.show());
  }
  return out;
}

void set_key(Experiment& experiment, const std::string& key, const std::string& value) {
  const std::vector<Field> all = fields(experiment);
  const Field* field = find_field(all, key);
  if (field == nullptr) throw Error("--{}: unknown key{}", key, suggestion(key));
  // A second line would be a second key.
  if (value.find_first_of("\r\n") != std::string::npos || !is_utf8(value)) {
    throw Error("--{}={:?}: must be one line of UTF-8", key, value);
  }
  toml::table table;
  try {
    table = toml::parse("value = " + value);
  } catch (const toml::parse_error&) {
    table.insert_or_assign("value", value);  // a bare word is a string
  }
  try {
    field->set(*table.get("value"));
  } catch (const Error& error) {
    throw Error("--{}={}: {}", key, value, error.what());
  }
}

std::vector<std::string> experiment_keys() {
  Experiment any;
  std::vector<std::string> keys;
  for (const Field& field : fields(any)) keys.push_back(field.key);
  return keys;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t fewest = std::max<size_t>(2, word.size() / 3) + 1;  // further away is no help
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t replaced = diagonal + (word[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    if (row.back() < fewest) {
      fewest = row.back();
      best = candidate;
    }
  }
  return best;
}

uint64_t random_seed() {
  std::random_device device;
  // 63 bits, as TOML has no larger integers.
  return (uint64_t{device()} << 32 | device()) >> 1;
}

}  // namespace fedsmooth
