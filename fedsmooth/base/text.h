// Makes names from users and files safe to show: one line of valid UTF-8, with HTML's special
// characters escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

/// Replaces control characters by spaces and bytes that are not UTF-8 by U+FFFD.
std::string one_line(std::string_view text);

/// Returns one_line(text) cut to at most `width` characters (`width` >= 3), with an ellipsis in the
/// middle: names of runs often differ only at the beginning or the end.
std::string shorten(std::string_view text, size_t width);

/// Returns one_line(text), escaped for use between tags and in quoted attributes.
std::string escape_html(std::string_view text);

/// `text` as one word of a shell's command line: quoted if it has to be.
std::string shell_word(std::string_view text);

/// The candidate with the fewest edits to `word`; empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace fedsmooth
