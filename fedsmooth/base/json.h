// Reads and writes JSON in files that others may have changed. Reading refuses text that is not
// JSON or is nested so deeply that walking it would overflow the stack; typed getters refuse a
// member of another type; writing never fails, because it replaces bytes that are not UTF-8.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace fedsmooth {

/// Parses a JSON object. Throws an Error that begins with `name` unless `text` is a JSON object
/// that is nested at most 64 levels deep.
nlohmann::json parse_json_object(std::string_view text, const std::string& name);

/// Each of these returns the member `key`, or nothing if the object does not have it. Each throws
/// an Error that begins with `name` if the member has another type or is out of range.
std::optional<std::string> find_string(const nlohmann::json& object, const std::string& key,
                                       const std::string& name);
std::optional<int64_t> find_count(const nlohmann::json& object, const std::string& key,
                                  const std::string& name);
std::optional<double> find_number(const nlohmann::json& object, const std::string& key,
                                  const std::string& name);
std::optional<bool> find_flag(const nlohmann::json& object, const std::string& key,
                              const std::string& name);

/// A seed is written as a string, because it has up to 64 bits and many readers of JSON keep only
/// 53 bits of a number. find_seed() also accepts a number, as versions up to 0.2 wrote it.
nlohmann::json seed_json(uint64_t seed);
std::optional<uint64_t> find_seed(const nlohmann::json& object, const std::string& key,
                                  const std::string& name);

/// Formats a value on one line (dump_json) or on many, indented by two spaces (dump_json_lines).
std::string dump_json(const nlohmann::json& value);
std::string dump_json_lines(const nlohmann::json& value);

}  // namespace fedsmooth
