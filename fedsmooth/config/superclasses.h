// Superclasses, disjoint sets of classes: a TOML file with one list of classes per superclass.
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
  std::vector<std::string> classes;  // names or numbers; none occurs twice in the file
};

/// Reads TOML text. Throws an Error with `file` and the line if a superclass is not a list of
/// strings or a string occurs twice. Whether the classes exist is not checked.
std::vector<Superclass> parse_superclasses(std::string_view text, const std::string& file);

}  // namespace fedsmooth
