#include "fedsmooth/config/fields.h"
#include "fedsmooth/base/text.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/model/network_json.h"

namespace fedsmooth {
namespace {

constexpr int kMaxDepth = 16;  // levels of nesting in the values of layers

void require(bool condition, const char* what) {
  if (!condition) throw Error("{}", what);
}

double to_double(const toml::node& node) {
  const auto value = node.value<double>();  // integers count too
  require(value && (node.is_floating_point() || node.is_integer()), "must be a number");
  require(std::isfinite(*value), "must be finite");
  // Computations use single precision.
  require(std::fabs(*value) <= std::numeric_limits<float>::max(), "must be at most 3.4e38");
  return *value;
}

int64_t to_integer(const toml::node& node) {
  require(node.is_integer(), "must be a whole number");
  return *node.value<int64_t>();
}

// TOML requires a point or an exponent in every floating-point number.
std::string show_double(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Layers in TOML have the same keys as in a model file, so they go through the same reader.
nlohmann::json to_json(const toml::node& node, int depth = 0) {
  require(depth < kMaxDepth, "is nested too deeply");
  if (const auto* table = node.as_table()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, value] : *table) {
      object[std::string(key.str())] = to_json(value, depth + 1);
    }
    return object;
  }
  if (const auto* array = node.as_array()) {
    nlohmann::json list = nlohmann::json::array();
    for (const toml::node& item : *array) list.push_back(to_json(item, depth + 1));
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

}  // namespace

std::string to_string(const toml::node& node) {
  require(node.is_string(), "must be a string");
  return *node.value<std::string>();
}

// TOML escapes the same characters as JSON, and DEL.
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

Field number(std::string key, double& value, bool (*valid)(double), const char* range) {
  return {std::move(key),
          [&value, valid, range](const toml::node& node) {
            const double read = to_double(node);
            require(valid(read), range);
            value = read;
          },
          [&value] { return show_double(value); }};
}

Field count(std::string key, int64_t& value, int64_t low, int64_t high) {
  return {std::move(key),
          [&value, low, high](const toml::node& node) {
            const int64_t read = to_integer(node);
            require(read >= low, low == 0 ? "must not be negative" : "must be positive");
            if (read > high) throw Error("must be at most {}", high);
            value = read;
          },
          [&value] { return fmt::format("{}", value); }};
}

Field path(std::string key, std::string& value) {
  Field field = {std::move(key), [&value](const toml::node& node) { value = to_string(node); },
                 [&value] { return show_string(value); }};
  field.is_text = field.names_file = true;
  return field;
}

Field boolean(std::string key, bool& value) {
  return {std::move(key),
          [&value](const toml::node& node) {
            require(node.is_boolean(), "must be true or false");
            value = node.value_or(false);
          },
          [&value] { return std::string(value ? "true" : "false"); }};
}

Field removed_flag(std::string key, std::string reason) {
  const auto set = [reason = std::move(reason)](const toml::node& node) {
    require(node.is_boolean(), "must be true or false");
    if (node.value_or(false)) throw Error("was removed: {}", reason);
  };
  const auto show = [] { return std::string("false"); };
  return {std::move(key), set, show, /*is_text=*/false, /*is_alias=*/true};
}

Field automatic(std::string key, double& value) {
  return {std::move(key),
          [&value](const toml::node& node) {
            if (node.is_string() && to_string(node) == "auto") {
              value = 0.0;
              return;
            }
            require(!node.is_string(), "must be a number or \"auto\"");
            const double read = to_double(node);
            require(read > 0, "must be positive");
            value = read;
          },
          [&value] { return value == 0.0 ? show_string("auto") : show_double(value); }};
}

Field automatic_number(std::string key, std::optional<double>& value, bool (*valid)(double),
                       const char* range) {
  return {std::move(key),
          [&value, valid, range](const toml::node& node) {
            if (node.is_string() && to_string(node) == "auto") {
              value.reset();
              return;
            }
            require(!node.is_string(), "must be a number or \"auto\"");
            const double read = to_double(node);
            require(valid(read), range);
            value = read;
          },
          [&value] { return value ? show_double(*value) : show_string("auto"); }};
}

Field automatic_count(std::string key, std::optional<int64_t>& value) {
  return {std::move(key),
          [&value](const toml::node& node) {
            if (node.is_string() && to_string(node) == "auto") {
              value.reset();
              return;
            }
            require(!node.is_string(), "must be a whole number or \"auto\"");
            int64_t read = 0;
            count("", read, 1).set(node);
            value = read;
          },
          [&value] { return value ? fmt::format("{}", *value) : show_string("auto"); }};
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

Field radii(std::string key, std::vector<double>& values) {
  Field field = numbers(std::move(key), values, /*positive=*/false);
  field.set = [&values, set_list = field.set](const toml::node& node) {
    std::vector<double> before = values;
    if (node.is_array()) {
      set_list(node);
    } else if (node.is_number()) {
      values = {to_double(node)};
    } else {
      const std::string text = "value = [" + to_string(node) + "]";
      try {
        set_list(*toml::parse(text).get("value"));
      } catch (const toml::parse_error&) {
        throw Error("must be numbers with commas between them");
      }
    }
    const bool fine = std::all_of(values.begin(), values.end(), [](double r) { return r >= 0; });
    if (!fine) values = std::move(before);
    require(fine, "must not be negative");
  };
  return field;
}

Field rising_counts(std::string key, std::vector<int64_t>& values, int64_t low) {
  return {std::move(key),
          [&values, low](const toml::node& node) {
            require(node.is_array(), "must be a list of whole numbers");
            std::vector<int64_t> read;
            for (const toml::node& item : *node.as_array()) {
              require(item.is_integer(), "must be whole numbers");
              const int64_t value = to_integer(item);
              require(
                  value > (read.empty() ? low - 1 : read.back()),
                  low == 0 ? "must not be negative, and must rise" : "must be positive and rise");
              read.push_back(value);
            }
            values = read;
          },
          [&values] { return fmt::format("[{}]", fmt::join(values, ", ")); }};
}

Field seed(std::string key, uint64_t& value, bool& is_random) {
  return {std::move(key),
          [&value, &is_random](const toml::node& node) {
            is_random = node.is_string() && to_string(node) == "random";
            if (is_random) {
              value = random_seed();
              return;
            }
            require(node.is_integer() && to_integer(node) >= 0,
                    "must be a whole number >= 0 or \"random\"");
            value = static_cast<uint64_t>(to_integer(node));
          },
          [&value] { return fmt::format("{}", value); }};
}

Field automatic_seed(std::string key, std::optional<uint64_t>& value) {
  return {std::move(key),
          [&value](const toml::node& node) {
            if (node.is_string() && to_string(node) == "auto") {
              value.reset();
              return;
            }
            require(node.is_integer() && to_integer(node) >= 0,
                    "must be a whole number >= 0 or \"auto\"");
            value = static_cast<uint64_t>(to_integer(node));
          },
          [&value] { return value ? fmt::format("{}", *value) : show_string("auto"); }};
}

Field layers(std::string key, std::vector<Layer>& value) {
  return {std::move(key),
          [&value](const toml::node& node) { value = layers_from_json(to_json(node), "layers"); },
          [&value] { return show_json(to_json(value)); }};
}

std::string suggest(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = nearest(word, names);
  return near.empty() ? "" : fmt::format("; did you mean {:?}?", near);
}

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) >> 1;
}

}  // namespace fedsmooth
