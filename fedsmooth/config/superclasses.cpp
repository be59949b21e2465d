#include "fedsmooth/config/superclasses.h"

#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/experiment_toml.h"

namespace fedsmooth {

std::vector<Superclass> parse_superclasses(std::string_view text, const std::string& file) {
  std::vector<Superclass> found;
  std::set<std::string> seen;
  for (const auto& [key, node] : parse_toml(text, file)) {
    const auto refuse = [&, &key = key, &node = node](const std::string& what) {
      throw Error("{}:{}: {}: {}", file, node.source().begin.line, key.str().substr(0, 40), what);
    };
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) refuse("must be a list of classes");
    Superclass one{std::string(key.str()), {}};
    for (const toml::node& item : *list) {
      if (!item.is_string()) refuse("must be a list of classes, each in quotes");
      one.classes.push_back(to_string(item));
      if (!seen.insert(one.classes.back()).second) {
        refuse(fmt::format("{:?} is there twice", one.classes.back().substr(0, 40)));
      }
    }
    found.push_back(std::move(one));
  }
  if (found.empty()) throw Error("{}: names no superclass", file);
  return found;
}

}  // namespace fedsmooth
