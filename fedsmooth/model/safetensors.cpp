#include "fedsmooth/model/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation
constexpr size_t kMaxDimensions = 8;

float from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  float value = 0;
  if (exponent == 0x1f) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
  }
  return std::copysign(value, bits >> 15 != 0 ? -1.0f : 1.0f);
}

float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

template <typename T>
T read_value(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// A type of numbers in a file. Floating-point ones become float.
struct NumberType {
  const char* name;
  size_t bytes;
  float (*to_float)(const char*);  // null for integers
};

constexpr NumberType kNumberTypes[] = {
    {"F32", 4, [](const char* p) { return read_value<float>(p); }},
    {"F64", 8, [](const char* p) { return static_cast<float>(read_value<double>(p)); }},
    {"F16", 2, [](const char* p) { return from_half(read_value<uint16_t>(p)); }},
    {"BF16", 2, [](const char* p) { return from_bfloat16(read_value<uint16_t>(p)); }},
    {"I64", 8, nullptr},
};

const NumberType* find_type(const std::string& dtype) {
  for (const NumberType& type : kNumberTypes) {
    if (dtype == type.name) return &type;
  }
  return nullptr;
}

// A JSON number that is a non-negative integer; sizes in a file are nothing else.
uint64_t read_size(const json& value, const std::string& where) {
  if (!value.is_number_unsigned()) {
    // Lists can be nested deeper than dump() has stack for.
    throw Error("{}: {} is not a size", where, value.is_primitive() ? value.dump() : "a list");
  }
  return value.get<uint64_t>();
}

struct Entry {
  std::string name;
  const NumberType* type;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

// Byte size of the shape, or nothing if it overflows. A side of 0 does not excuse the others.
std::optional<uint64_t> byte_size(const std::vector<int64_t>& shape, uint64_t item) {
  int64_t size = static_cast<int64_t>(item);
  bool empty = false;
  for (const int64_t side : shape) {
    empty = empty || side == 0;
    if (side > 0 && __builtin_mul_overflow(size, side, &size)) return std::nullopt;
  }
  return empty ? 0 : size;
}

Entry read_entry(const std::string& name, const json& info, uint64_t data_size,
                 const std::string& where) {
  const auto has = [&](const char* key, json::value_t type) {
    return info.contains(key) && info[key].type() == type;
  };
  if (!info.is_object() || !has("dtype", json::value_t::string) ||
      !has("shape", json::value_t::array) || !has("data_offsets", json::value_t::array) ||
      info["data_offsets"].size() != 2) {
    throw Error("{}: needs dtype, shape and data_offsets", where);
  }
  const auto dtype = info["dtype"].get<std::string>();
  const NumberType* type = find_type(dtype);
  if (type == nullptr) throw Error("{}: dtype {:?} is not supported", where, dtype);
  Entry entry{name, type};
  if (info["shape"].size() > kMaxDimensions) throw Error("{}: too many dimensions", where);
  for (const json& side : info["shape"]) {
    const uint64_t size = read_size(side, where);
    if (size > uint64_t{1} << 40) throw Error("{}: a side of {} is too large", where, size);
    entry.shape.push_back(static_cast<int64_t>(size));
  }
  entry.begin = read_size(info["data_offsets"][0], where);
  entry.end = read_size(info["data_offsets"][1], where);
  if (entry.begin > entry.end || entry.end > data_size) {
    throw Error("{}: data_offsets [{}, {}] lie outside the {} bytes of data", where, entry.begin,
                entry.end, data_size);
  }
  if (byte_size(entry.shape, entry.type->bytes) != entry.end - entry.begin) {
    throw Error("{}: shape [{}] does not fit its {} bytes", where, fmt::join(entry.shape, ", "),
                entry.end - entry.begin);
  }
  return entry;
}

Array read_array(const Entry& entry, std::string_view data) {
  const char* from = data.data() + entry.begin;
  if (entry.type->to_float == nullptr) {
    Array integers(entry.shape, Array::Type::kInteger);
    if (integers.count() > 0) std::memcpy(integers.data(), from, integers.byte_count());
    return integers;
  }
  Array floats(entry.shape);
  for (int64_t i = 0; i < floats.count(); ++i, from += entry.type->bytes) {
    floats.floats()[i] = entry.type->to_float(from);
  }
  return floats;
}

void check_covered(std::vector<Entry> entries, uint64_t data_size, const std::string& name) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != covered) {
      throw Error("{}: tensor {:?} starts at byte {} of the data, expected {}", name, entry.name,
                  entry.begin, covered);
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    throw Error("{}: {} bytes after the last tensor", name, data_size - covered);
  }
}

// Looks for a name that an object has twice, of which json::parse() would take the last. Its own
// callback could look too, but takes quadratic time.
class NameCheck : public nlohmann::json_sax<json> {
 public:
  const std::optional<std::string>& repeated() const { return repeated_; }

  bool start_object(size_t /*size*/) override {
    open_.emplace_back();
    return true;
  }
  bool key(std::string& name) override {
    if (!open_.back().insert(name).second) repeated_ = name;
    return !repeated_;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(int64_t /*value*/) override { return true; }
  bool number_unsigned(uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(json::binary_t& /*value*/) override { return true; }
  bool start_array(size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t /*at*/, const std::string& /*token*/,
                   const json::exception& /*why*/) override {
    return false;
  }

 private:
  std::vector<std::unordered_set<std::string>> open_;  // names of the objects that are open
  std::optional<std::string> repeated_;
};

json parse_header(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 8) throw Error("{}: {} bytes are not a safetensors file", name, bytes.size());
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  if (size > kMaxHeader || size > bytes.size() - 8) {
    throw Error("{}: a header of {} bytes in a file of {}; cut off, or no safetensors file", name,
                size, bytes.size());
  }
  const std::string_view text = bytes.substr(8, size);
  NameCheck names;
  const bool is_json = json::sax_parse(text, &names);
  if (names.repeated()) throw Error("{}: the header has {:?} twice", name, *names.repeated());
  json header = is_json ? json::parse(text) : json();
  if (!header.is_object()) throw Error("{}: the header is no JSON object", name);
  return header;
}

}  // namespace

Safetensors parse_safetensors(std::string_view bytes, const std::string& name) {
  const json header = parse_header(bytes, name);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  const std::string_view data = bytes.substr(8 + header_size);

  Safetensors content;
  std::vector<Entry> entries;
  for (const auto& [key, info] : header.items()) {
    if (key == "__metadata__") {
      if (!info.is_object()) throw Error("{}: __metadata__ is no JSON object", name);
      for (const auto& [item, value] : info.items()) {
        if (!value.is_string()) throw Error("{}: metadata {:?} is not a string", name, item);
        content.metadata[item] = value.get<std::string>();
      }
      continue;
    }
    entries.push_back(
        read_entry(key, info, data.size(), fmt::format("{}: tensor {:?}", name, key)));
  }
  check_covered(entries, data.size(), name);
  for (const Entry& entry : entries) content.tensors[entry.name] = read_array(entry, data);
  return content;
}

std::string format_safetensors(const Safetensors& content) {
  json header = json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    check(tensor.type() == Array::Type::kFloat, "format_safetensors: {} is not float32", name);
    const uint64_t end = offset + tensor.byte_count();
    header[name] = {{"dtype", "F32"}, {"shape", tensor.sizes()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors start at a multiple of eight bytes
  const uint64_t size = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  bytes.reserve(8 + size + offset);
  bytes += text;
  for (const auto& [name, tensor] : content.tensors) {
    bytes.append(static_cast<const char*>(tensor.data()), tensor.byte_count());
  }
  return bytes;
}

}  // namespace fedsmooth
