// The types of an experiment's keys: how each is read from TOML, checked and printed. The functions
// return a Field that refers to `value`, which must outlive it.
#pragma once

// toml++ 3.3 asserts on headers such as "[}" before its own check refuses them.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// One key. `set` throws an Error that says what is wrong with the value; the caller adds key, file
/// and line. `show` returns the value as TOML.
struct Field {
  std::string key;
  std::function<void(const toml::node&)> set;
  std::function<std::string()> show;
  bool is_text = false;     // on the command line, an unquoted value is a string even if it is TOML
  bool is_alias = false;    // an old name of other keys, or a removed key: read but never printed
  bool names_file = false;  // the value is the path of a file or folder that a job opens
};

/// A number for which `valid` is true; `range` is the message for others.
Field number(std::string key, double& value, bool (*valid)(double), const char* range);
/// A whole number from `low`, which is 0 or 1, to `high`.
Field count(std::string key, int64_t& value, int64_t low, int64_t high = INT32_MAX);
/// The path of a file or folder that a job opens.
Field path(std::string key, std::string& value);
Field boolean(std::string key, bool& value);
/// A flag that was removed: false is read and ignored, true is refused with `reason`.
Field removed_flag(std::string key, std::string reason);
/// A positive number, or "auto" for 0.
Field automatic(std::string key, double& value);
/// A number for which `valid` is true, or "auto" for none; `range` is the message for others.
Field automatic_number(std::string key, std::optional<double>& value, bool (*valid)(double),
                       const char* range);
/// A whole number >= 1, or "auto" for none.
Field automatic_count(std::string key, std::optional<int64_t>& value);
/// A list of numbers, all positive if `positive` is set.
Field numbers(std::string key, std::vector<double>& values, bool positive);
/// A list of whole numbers >= `low`, each larger than the one before.
Field rising_counts(std::string key, std::vector<int64_t>& values, int64_t low);
/// Numbers >= 0: a list, one number, or a string with commas, as on command lines.
Field radii(std::string key, std::vector<double>& values);
/// A whole number >= 0, or "random": then a seed is drawn and `is_random` is set.
Field seed(std::string key, uint64_t& value, bool& is_random);
/// A whole number >= 0, or "auto" for none.
Field automatic_seed(std::string key, std::optional<uint64_t>& value);
/// A list of layers, with the keys that they have in a model file.
Field layers(std::string key, std::vector<Layer>& value);
/// A string that must be one of `names`.
Field name_choice(std::string key, std::string& value, const std::vector<std::string>& names);

/// Returns the string that a TOML value is. Throws an Error if it has another type.
std::string to_string(const toml::node& node);
/// Returns a string as TOML, with quotes and escapes.
std::string show_string(const std::string& text);
bool is_utf8(const std::string& text);

/// Draws a seed from the operating system. It has 63 bits, because TOML has no larger integers.
uint64_t random_seed();

/// Returns "; did you mean ...?" with the name nearest to `word`; empty if none is near.
std::string suggest(const std::string& word, const std::vector<std::string>& names);

/// A string that must be the name of one of `options`, whose value is stored. Messages do not offer
/// an empty name.
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
    throw Error("must be {}{}", fmt::join(names, ", "), suggest(read, names));
  };
  const auto show = [&value, options] {
    for (const auto& [name, option] : options) {
      if (option == value) return show_string(name);
    }
    throw Bug("choice: a value without a name");
  };
  return {std::move(key), set, show};
}

}  // namespace fedsmooth
