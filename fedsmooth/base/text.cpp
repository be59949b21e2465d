#include "fedsmooth/base/text.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace fedsmooth {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// Bytes of the well-formed UTF-8 sequence (Unicode, table 3-7) that `text` starts with; 0 if none.
size_t sequence_length(std::string_view text) {
  const auto within = [text](size_t i, unsigned low, unsigned high) {
    const unsigned byte = i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    return byte >= low && byte <= high;
  };
  const bool third = within(2, 0x80, 0xbf);
  const bool fourth = third && within(3, 0x80, 0xbf);
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead <= 0x7f) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return within(1, 0x80, 0xbf) ? 2 : 0;
  if (lead == 0xe0) return within(1, 0xa0, 0xbf) && third ? 3 : 0;
  if (lead == 0xed) return within(1, 0x80, 0x9f) && third ? 3 : 0;
  if (lead >= 0xe1 && lead <= 0xef) return within(1, 0x80, 0xbf) && third ? 3 : 0;
  if (lead == 0xf0) return within(1, 0x90, 0xbf) && fourth ? 4 : 0;
  if (lead >= 0xf1 && lead <= 0xf3) return within(1, 0x80, 0xbf) && fourth ? 4 : 0;
  if (lead == 0xf4) return within(1, 0x80, 0x8f) && fourth ? 4 : 0;
  return 0;
}

/// Where character number `index` begins.
size_t offset_of(std::string_view text, size_t index) {
  size_t offset = 0;
  for (; offset < text.size(); ++offset) {
    if (!is_continuation(text[offset]) && index-- == 0) break;
  }
  return offset;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      line += "\ufffd";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += ' ';
    } else {
      line += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return line;
}

std::string shorten(std::string_view text, size_t width) {
  const std::string line = one_line(text);
  const auto characters = static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return !is_continuation(c); }));
  if (characters <= width) return line;
  const size_t head = (width - 1) / 2;
  const size_t tail = width - 1 - head;
  return line.substr(0, offset_of(line, head)) + "…" +
         line.substr(offset_of(line, characters - tail));
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : one_line(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "%+,-./:=@_~^";
  const auto plain = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && text[0] != '~' && std::all_of(text.begin(), text.end(), plain)) {
    return std::string(text);
  }
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t fewest = std::max<size_t>(2, word.size() / 3) + 1;  // a word further away does not help
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t replaced = diagonal + (word[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    if (row.back() < fewest) {
      fewest = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace fedsmooth
