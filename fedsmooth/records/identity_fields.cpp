#include "fedsmooth/records/identity_fields.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/records/certificates.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

constexpr const char* kAutomatic = "auto";

// Returns the list `key`; none if it is not there. `kind` is what its items are, in messages.
template <typename Item>
std::optional<std::vector<Item>> find_list(const json& object, const char* key,
                                           const std::string& name, bool (json::*is_item)() const,
                                           const char* kind) {
  if (!object.contains(key)) return std::nullopt;
  const json& list = object[key];
  const auto fits = [is_item](const json& item) { return (item.*is_item)(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), fits)) {
    throw Error("{}: \"{}\" is not a list of {}", name, key, kind);
  }
  return list.get<std::vector<Item>>();
}

}  // namespace

void IdentityReader::operator()(const char* key, std::optional<std::string>& value) const {
  value = find_string(object, key, name);
}

void IdentityReader::operator()(const char* key, std::optional<int64_t>& value) const {
  value = find_count(object, key, name);
}

void IdentityReader::operator()(const char* key, std::optional<uint64_t>& value) const {
  value = find_seed(object, key, name);
}

void IdentityReader::operator()(const char* key, std::optional<double>& value) const {
  value = find_number(object, key, name);
}

void IdentityReader::operator()(const char* key, std::optional<bool>& value) const {
  value = find_flag(object, key, name);
}

void IdentityReader::operator()(const char* key, std::optional<RadiusKind>& value) const {
  const std::optional<std::string> text = find_string(object, key, name);
  if (!text) return;
  value = *text == radius_name(RadiusKind::kMulticlass) ? RadiusKind::kMulticlass
                                                        : RadiusKind::kOneSided;
  if (*text != radius_name(*value)) {
    throw Error("{}: \"{}\" is {:?}, which is not one-sided or multiclass", name, key,
                text->substr(0, 40));
  }
}

void IdentityReader::operator()(const char* key, std::optional<AutomaticNumber>& value) const {
  if (!object.contains(key)) return;
  value.emplace();
  if (object[key] != kAutomatic) value->value = find_number(object, key, name).value();
}

void IdentityReader::operator()(const char* key, std::optional<std::vector<double>>& value) const {
  value = find_list<double>(object, key, name, &json::is_number, "numbers");
}

void IdentityReader::operator()(const char* key,
                                std::optional<std::vector<std::string>>& value) const {
  value = find_list<std::string>(object, key, name, &json::is_string, "strings");
}

void IdentityWriter::operator()(const char* key, const std::optional<uint64_t>& value) const {
  if (value) object[key] = seed_json(*value);
}

void IdentityWriter::operator()(const char* key, const std::optional<RadiusKind>& value) const {
  if (value) object[key] = radius_name(*value);
}

void IdentityWriter::operator()(const char* key,
                                const std::optional<AutomaticNumber>& value) const {
  if (value) object[key] = value->value == 0 ? json(kAutomatic) : json(value->value);
}

void refuse_unknown_members(const json& object, const std::set<std::string>& known,
                            const std::string& what, const std::string& name) {
  for (const auto& [key, value] : object.items()) {
    if (known.contains(key)) continue;
    throw Error(
        "{}: {} has {:?}, which this version does not know; read it with the version that wrote it",
        name, what, key.substr(0, 40));
  }
}

}  // namespace fedsmooth
