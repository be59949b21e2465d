#include "fedsmooth/base/json.h"

#include <charconv>
#include <cmath>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;

// The depth of brackets outside strings. nlohmann's parser does not recurse, but everything after
// it does.
int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

const json* find(const json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& name, const std::string& key, const json& value,
                         const char* wanted) {
  throw Error("{}: \"{}\" is {}, which is not {}", name, key,
              value.is_structured() ? value.type_name() : dump_json(value).substr(0, 40), wanted);
}

std::optional<uint64_t> find_whole_number(const json& object, const std::string& key,
                                          const std::string& name) {
  const json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  const bool negative = value->is_number_integer() && !value->is_number_unsigned() && *value < 0;
  if (!value->is_number_integer() || negative) refuse(name, key, *value, "a whole number >= 0");
  return value->get<uint64_t>();
}

}  // namespace

json parse_json_object(std::string_view text, const std::string& name) {
  if (nesting(text) > kMaxDepth) throw Error("{}: is nested more than {} deep", name, kMaxDepth);
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) throw Error("{}: is not a JSON object", name);
  return value;
}

std::optional<std::string> find_string(const json& object, const std::string& key,
                                       const std::string& name) {
  const json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(name, key, *value, "a string");
  return value->get<std::string>();
}

std::optional<uint64_t> find_seed(const json& object, const std::string& key,
                                  const std::string& name) {
  const json* value = find(object, key);
  if (value == nullptr || !value->is_string()) return find_whole_number(object, key, name);
  const std::string& text = value->get_ref<const std::string&>();
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse(name, key, *value, "a whole number >= 0");
  }
  return seed;
}

json seed_json(uint64_t seed) { return std::to_string(seed); }

std::optional<int64_t> find_count(const json& object, const std::string& key,
                                  const std::string& name) {
  const std::optional<uint64_t> value = find_whole_number(object, key, name);
  if (!value) return std::nullopt;
  if (*value > INT64_MAX) refuse(name, key, object[key], "below 2^63");
  return static_cast<int64_t>(*value);
}

std::optional<double> find_number(const json& object, const std::string& key,
                                  const std::string& name) {
  const json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    refuse(name, key, *value, "a finite number");
  }
  return value->get<double>();
}

std::optional<bool> find_flag(const json& object, const std::string& key, const std::string& name) {
  const json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(name, key, *value, "true or false");
  return value->get<bool>();
}

std::string dump_json(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string dump_json_lines(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace fedsmooth
