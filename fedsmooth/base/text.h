// Names come from users and files. Before they are shown they become one line of valid UTF-8, and
// HTML's special characters lose their meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

/// Control characters become spaces, bytes that are not UTF-8 become U+FFFD.
std::string one_line(std::string_view text);

/// one_line() cut to at most `width` characters (at least 3), with an ellipsis in the middle: runs
/// often differ only in the beginning or the end of their names.
std::string shorten(std::string_view text, size_t width);

/// one_line() for use between tags and in quoted attributes.
std::string escape_html(std::string_view text);

/// `text` as one word of a shell's command line: quoted if it has to be.
std::string shell_word(std::string_view text);

/// The candidate with the fewest edits to `word`; empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace fedsmooth
