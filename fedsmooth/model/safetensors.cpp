#include "fedsmooth/model/safetensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation
constexpr size_t kMaxDimensions = 8;

std::optional<at::ScalarType> scalar_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "F64") return at::kDouble;
  if (dtype == "F16") return at::kHalf;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "I64") return at::kLong;
  return std::nullopt;
}

// A JSON number that is a non-negative integer; sizes in a file are nothing else.
uint64_t read_size(const json& value, const std::string& where) {
  if (!value.is_number_unsigned()) {
    // Lists can be nested deeper than dump() has stack for.
    throw Error("{}: {} is no size", where, value.is_primitive() ? value.dump() : "a list");
  }
  return value.get<uint64_t>();
}

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

// Byte size of the shape, or nothing if it overflows. A side of 0 does not excuse the others:
// LibTorch multiplies them for the strides.
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
  const auto type = scalar_type(dtype);
  if (!type) throw Error("{}: dtype {:?} is not supported", where, dtype);
  Entry entry{name, *type};
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
  if (byte_size(entry.shape, c10::elementSize(entry.type)) != entry.end - entry.begin) {
    throw Error("{}: shape [{}] does not fit its {} bytes", where, fmt::join(entry.shape, ", "),
                entry.end - entry.begin);
  }
  return entry;
}

Tensor read_tensor(const Entry& entry, std::string_view data) {
  Tensor tensor = at::empty(entry.shape, entry.type);
  if (tensor.numel() > 0) {
    std::memcpy(tensor.data_ptr(), data.data() + entry.begin, entry.end - entry.begin);
  }
  return entry.type == at::kLong ? tensor : tensor.to(at::kFloat);
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

json parse_header(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 8) throw Error("{}: {} bytes are no safetensors file", name, bytes.size());
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  if (size > kMaxHeader || size > bytes.size() - 8) {
    throw Error("{}: a header of {} bytes in a file of {}; cut off, or no safetensors file", name,
                size, bytes.size());
  }
  const std::string_view text = bytes.substr(8, size);
  std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
  std::optional<std::string> repeated;
  const auto watch = [&](int /*depth*/, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value).second) repeated = value;
    return true;
  };
  json header = json::parse(text, watch, /*allow_exceptions=*/false);
  if (!header.is_object()) throw Error("{}: the header is no JSON object", name);
  if (repeated) throw Error("{}: the header has {:?} twice", name, *repeated);
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
        if (!value.is_string()) throw Error("{}: metadata {:?} is no string", name, item);
        content.metadata[item] = value.get<std::string>();
      }
      continue;
    }
    entries.push_back(
        read_entry(key, info, data.size(), fmt::format("{}: tensor {:?}", name, key)));
  }
  check_covered(entries, data.size(), name);
  for (const Entry& entry : entries) content.tensors[entry.name] = read_tensor(entry, data);
  return content;
}

std::string format_safetensors(const Safetensors& content) {
  json header = json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    TORCH_CHECK(tensor.scalar_type() == at::kFloat, "format_safetensors: ", name,
                " is not float32");
    const uint64_t end = offset + tensor.numel() * sizeof(float);
    header[name] = {{"dtype", "F32"},
                    {"shape", std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end())},
                    {"data_offsets", {offset, end}}};
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
    const Tensor dense = tensor.contiguous();
    bytes.append(static_cast<const char*>(dense.data_ptr()), dense.numel() * sizeof(float));
  }
  return bytes;
}

}  // namespace fedsmooth
