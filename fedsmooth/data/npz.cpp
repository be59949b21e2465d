#include "fedsmooth/data/npz.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/data/zip.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostAxes = 8;
constexpr size_t kLongestHeader = 1 << 16;

/// Reads the header, a Python dictionary of three known keys, from left to right.
class HeaderScanner {
 public:
  HeaderScanner(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  /// Whether `word` comes next; if so it is passed.
  bool take(std::string_view word) {
    skip_spaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) throw damaged();
  }
  std::string quoted() {
    expect("'");
    const size_t end = text_.find('\'');
    if (end == std::string_view::npos) throw damaged();
    std::string word(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return word;
  }
  int64_t number() {
    skip_spaces();
    int64_t value = 0;
    const auto [rest, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) throw damaged();
    text_.remove_prefix(rest - text_.data());
    return value;
  }
  bool at_end() {
    skip_spaces();
    return text_.empty();
  }
  Error damaged() const { return Error("{}: its .npy header is damaged; write it again", name_); }

 private:
  void skip_spaces() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size()));
  }

  std::string_view text_;
  const std::string& name_;
};

Sizes scan_shape(HeaderScanner& in) {
  Sizes sizes;
  in.expect("(");
  while (!in.take(")")) {
    if (sizes.size() == kMostAxes) throw in.damaged();
    sizes.push_back(in.number());
    if (!in.take(",")) {
      in.expect(")");
      break;
    }
  }
  return sizes;
}

void scan_header(std::string_view text, const std::string& name, NpyArray& array) {
  HeaderScanner in(text, name);
  bool has_type = false, has_order = false, has_shape = false;
  in.expect("{");
  while (!in.take("}")) {
    const std::string key = in.quoted();
    in.expect(":");
    if (key == "descr" && !std::exchange(has_type, true)) {
      if (in.take("[")) throw Error("{}: an array of records; save plain numbers", name);
      array.type = in.quoted();
    } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
      if (in.take("True")) {
        throw Error("{}: in Fortran's order; save numpy.ascontiguousarray of it", name);
      }
      in.expect("False");
    } else if (key == "shape" && !std::exchange(has_shape, true)) {
      array.sizes = scan_shape(in);
    } else {
      throw in.damaged();
    }
    if (!in.take(",")) {
      in.expect("}");
      break;
    }
  }
  if (!(has_type && has_order && has_shape && in.at_end())) throw in.damaged();
}

/// Bytes of one value; 0 for types that are not plain numbers in this machine's order.
int64_t width_of(const std::string& type) {
  const bool ordered = type.size() == 3 && (type[0] == '<' || type[0] == '|');
  if (!ordered || std::string_view("uifb").find(type[1]) == std::string_view::npos) return 0;
  const int64_t width = type[2] - '0';
  return width == 1 || width == 2 || width == 4 || width == 8 ? width : 0;
}

template <typename Number>
std::vector<int64_t> widen(const std::string& bytes, const std::string& name) {
  std::vector<int64_t> values;
  values.reserve(bytes.size() / sizeof(Number));
  for (size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    Number value;
    std::copy_n(bytes.data() + at, sizeof(Number), reinterpret_cast<char*>(&value));
    if (!std::in_range<int64_t>(value)) throw Error("{}: {} is too large", name, value);
    values.push_back(static_cast<int64_t>(value));
  }
  return values;
}

}  // namespace

NpyArray parse_npy(std::string_view bytes, const std::string& name) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) {
    throw Error("{}: not a .npy array; write it again", name);
  }
  // Version 1 has two bytes for the header's length, versions 2 and 3 four.
  const size_t start = byte(6) == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (byte(6) != 1)
    length |= static_cast<size_t>(byte(10)) << 16 | static_cast<size_t>(byte(11)) << 24;
  if (byte(6) < 1 || byte(6) > 3 || length > kLongestHeader || length > bytes.size() - start) {
    throw Error("{}: not a .npy array of version 1 to 3; write it again", name);
  }
  NpyArray array;
  scan_header(bytes.substr(start, length), name, array);
  if (array.type.find('O') != std::string::npos) {
    throw Error("{}: an array of Python objects, whose pickle is not read; save plain numbers",
                name);
  }
  const int64_t width = width_of(array.type);
  if (width == 0) {
    throw Error("{}: values of type {:?} are not read; save uint8 images and integer labels", name,
                shorten(array.type, 20));
  }
  const std::string_view values = bytes.substr(start + length);
  int64_t count = 1;
  for (const int64_t size : array.sizes) {
    count = size == 0 || count > std::ssize(values) / size ? 0 : count * size;
  }
  if (count == 0 || std::ssize(values) % width != 0 || count != std::ssize(values) / width) {
    throw Error("{}: {} bytes of values, its shape says ({}) of {}; write it again", name,
                values.size(), fmt::join(array.sizes, ", "), array.type);
  }
  array.bytes = values;
  return array;
}

NpyArray read_npz_member(std::string_view file, const std::string& member,
                         const std::string& name) {
  std::vector<std::string> names;
  for (const ZipMember& one : list_zip(file, name)) {
    const std::string where = fmt::format("{}: {}", name, member);
    if (one.name == member + ".npy") return parse_npy(read_zip_member(file, one, where), where);
    if (names.size() < 10) names.push_back(shorten(one.name, 40));
  }
  throw Error("{}: no array {}; it has {}", name, member,
              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

std::vector<int64_t> to_integers(const NpyArray& array, const std::string& name) {
  const bool is_signed = array.type[1] == 'i';
  if (is_signed || array.type[1] == 'u') {
    switch (width_of(array.type)) {
      case 1:
        return is_signed ? widen<int8_t>(array.bytes, name) : widen<uint8_t>(array.bytes, name);
      case 2:
        return is_signed ? widen<int16_t>(array.bytes, name) : widen<uint16_t>(array.bytes, name);
      case 4:
        return is_signed ? widen<int32_t>(array.bytes, name) : widen<uint32_t>(array.bytes, name);
      case 8:
        return is_signed ? widen<int64_t>(array.bytes, name) : widen<uint64_t>(array.bytes, name);
      default:
        break;
    }
  }
  throw Error("{}: values of type {:?}, expected integers", name, array.type);
}

}  // namespace fedsmooth
