#include "python/src/words.h"

#include <algorithm>
#include <cctype>

namespace fedsmooth::python {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_inside(char c) { return is_word(c) || c == '-' || c == '_' || c == '.'; }

// Returns the name of the option with which `rest` begins, without a full stop after it; empty if
// there is none.
std::string_view option_name(std::string_view rest) {
  if (rest.size() < 3 || !rest.starts_with("--") || !is_word(rest[2])) return {};
  size_t end = 2;
  while (end < rest.size() && is_inside(rest[end])) ++end;
  while (rest[end - 1] == '.' || rest[end - 1] == '-') --end;
  return rest.substr(2, end - 2);
}

// Returns the name of Python's parameter for an option. Two differ: attack() has `epsilons`, and
// `with` is a keyword.
std::string_view parameter(std::string_view option) {
  if (option == "epsilon") return "epsilons";
  if (option == "with") return "with_";
  return option;
}

std::string argument(std::string_view name, bool has_value) {
  if (name == "resume") return "resume=True";
  if (name == "against") return "against";  // radii_against() has *against
  if (name.find('.') != std::string_view::npos) return std::string(name);  // a key
  std::string word(parameter(name));
  std::replace(word.begin(), word.end(), '-', '_');
  return has_value ? word : word + "=";
}

}  // namespace

std::string in_python_words(std::string_view message) {
  std::string said;
  size_t i = 0;
  while (i < message.size()) {
    const std::string_view rest = message.substr(i);
    if (rest[0] == '`') {
      const size_t end = std::min(rest.find('`', 1), rest.size() - 1);
      said += rest.substr(0, end + 1);
      i += end + 1;
      continue;
    }
    const bool begins = i == 0 || !is_inside(message[i - 1]);
    const std::string_view name = begins ? option_name(rest) : std::string_view();
    if (name.empty()) {
      said += rest[0];
      ++i;
      continue;
    }
    i += 2 + name.size();
    said += argument(name, i < message.size() && message[i] == '=');
  }
  return said;
}

}  // namespace fedsmooth::python
