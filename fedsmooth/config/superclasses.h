// Superclasses, a TOML file of one list per superclass:
//
//     animals = ["bird", "cat", "deer"]
//     vehicles = ["airplane", "truck"]
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct Superclass {
  std::string name;
  std::vector<std::string> classes;  // names or numbers; none twice, nor in another superclass
};

/// Reads TOML text; `file` stands in error messages, with the line.
std::vector<Superclass> parse_superclasses(std::string_view text, const std::string& file);

}  // namespace fedsmooth
