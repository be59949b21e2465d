// The types that keys of an experiment have: how each is read from TOML, checked and printed.
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

/// One key. `set` throws an Error that says what is wrong with the value; the caller adds where.
struct Field {
  std::string key;
  std::function<void(const toml::node&)> set;
  std::function<std::string()> show;
  bool is_text = false;   // on the command line the value is taken as it stands
  bool is_alias = false;  // of other keys, or removed: read, left out where all keys are printed
};

Field number(std::string key, double& value, bool (*valid)(double), const char* range);
/// A whole number of at least `low`, which is 0 or 1, and at most `high`.
Field count(std::string key, int64_t& value, int64_t low, int64_t high = INT32_MAX);
Field text(std::string key, std::string& value);
Field boolean(std::string key, bool& value);
/// A flag that is no more: false is read and means nothing, true is refused with `reason`.
Field removed_flag(std::string key, std::string reason);
/// A positive number, or "auto" for 0.
Field automatic(std::string key, double& value);
/// A number, or "auto" for none.
Field automatic_number(std::string key, std::optional<double>& value, bool (*valid)(double),
                       const char* range);
/// A whole number >= 1, or "auto" for none.
Field automatic_count(std::string key, std::optional<int64_t>& value);
Field numbers(std::string key, std::vector<double>& values, bool positive);
/// Whole numbers of at least `low`, each larger than the one before.
Field rising_counts(std::string key, std::vector<int64_t>& values, int64_t low);
/// Numbers >= 0 as a list, or as text with commas, as command lines have it.
Field radii(std::string key, std::vector<double>& values);
/// A whole number >= 0, or "random", which is drawn.
Field seed(std::string key, uint64_t& value, bool& is_random);
/// A whole number >= 0, or "auto" for none.
Field automatic_seed(std::string key, std::optional<uint64_t>& value);
/// A list of layers with the keys that they have in a model file.
Field layers(std::string key, std::vector<Layer>& value);
Field name_choice(std::string key, std::string& value, const std::vector<std::string>& names);

/// A TOML value as a string, or an Error.
std::string to_string(const toml::node& node);
/// A string as TOML.
std::string show_string(const std::string& text);
bool is_utf8(const std::string& text);

/// One seed from the operating system: 63 bits, as TOML has no larger integers.
uint64_t random_seed();

/// "; did you mean ...?" with the name nearest to `word`; empty if none is near.
std::string suggest(const std::string& word, const std::vector<std::string>& names);

/// A string out of a list, stored as what stands beside it. An empty name is not offered.
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
