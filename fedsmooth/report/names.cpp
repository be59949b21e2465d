#include "fedsmooth/report/names.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

namespace fedsmooth {
namespace {

std::vector<std::string> split_name(const std::string& name) {
  std::vector<std::string> parts = {""};
  for (const char c : name) {
    if (c == '-') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string with_spaces(std::string text) {
  std::ranges::replace(text, '_', ' ');
  return text;
}

/// Where the number of "gamma0.1" begins; 0 if the part is not a key of two letters or more with a
/// number.
size_t number_begin(std::string_view part) {
  const auto is_key = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto key = std::ranges::find_if_not(part, is_key) - part.begin();
  const std::string_view number = part.substr(key);
  if (key < 2 || number.empty() || !is_digit(number.front())) return 0;
  const bool all = std::ranges::all_of(number, [&](char c) { return is_digit(c) || c == '.'; });
  return all ? key : 0;
}

/// Pieces of the readable name, each of one or several parts.
class Pieces {
 public:
  void add_label(const std::string& label) {
    pieces_.push_back(label);
    joins_ = false;
  }
  void add_part(const std::string& part) {
    if (const size_t number = number_begin(part)) {
      add_label(with_spaces(part.substr(0, number)) + " " + part.substr(number));
      return;
    }
    const bool phrase = part.find('_') != std::string::npos;
    if (joins_ && !phrase) {
      pieces_.back() += "-" + part;
    } else {
      pieces_.push_back(with_spaces(part));
    }
    joins_ = !phrase;
  }
  std::string joined() const {
    std::string text;
    for (const std::string& piece : pieces_) text += (text.empty() ? "" : ", ") + piece;
    return text;
  }

 private:
  std::vector<std::string> pieces_;
  bool joins_ = false;  // whether the next word belongs to the last piece, as in cat-rs
};

/// How many parts from `begin` on make the longest name that has a label; 0: none.
size_t labelled_parts(const std::vector<std::string>& parts, size_t begin,
                      const std::map<std::string, std::string>& labels, std::string& label) {
  size_t found = 0;
  std::string name;
  for (size_t i = begin; i < parts.size(); ++i) {
    name += (i == begin ? "" : "-") + parts[i];
    const auto at = labels.find(name);
    if (at == labels.end()) continue;
    found = i + 1 - begin;
    label = at->second;
  }
  return found;
}

}  // namespace

std::string readable_name(const std::string& name,
                          const std::map<std::string, std::string>& labels) {
  const std::vector<std::string> parts = split_name(name);
  Pieces pieces;
  bool any = parts.size() > 1 && std::ranges::any_of(parts, number_begin);
  for (size_t i = 0; i < parts.size();) {
    std::string label;
    const size_t count = labelled_parts(parts, i, labels, label);
    if (count == 0) {
      pieces.add_part(parts[i++]);
      continue;
    }
    pieces.add_label(label);
    any = true;
    i += count;
  }
  return any ? pieces.joined() : name;
}

}  // namespace fedsmooth
