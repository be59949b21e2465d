#include "cli/against.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace fedsmooth::cli {

void add_against(Command& command, jobs::AgainstOptions& options) {
  command.repeated_option("against", options.against,
                          "classes that the answer never is: names, numbers or superclasses (A,B)");
  command.option("superclasses", options.superclasses,
                 "TOML file: animals = [\"bird\", \"cat\"]; alone: the answer's superclass stays");
  command.option("top", options.top, "K: the selected class stays among the K likeliest");
}

nlohmann::json against_json(const AgainstResult& result) {
  nlohmann::json radii = nlohmann::json::array();
  for (const auto& [radius, share] : result.found.certified) {
    radii.push_back(
        {{"radius", radius}, {"certified", share.value}, {"low", share.low}, {"high", share.high}});
  }
  return {{"name", result.name},
          {"claim", result.claim},
          {"alpha", result.alpha},
          {"images", result.found.images},
          {"certified", radii}};
}

std::string render_against(const AgainstResult& result) {
  if (result.found.images == 0) {
    return fmt::format("{}: {}: every image is of a class to avoid\n", result.name, result.claim);
  }
  std::string radii, shares;
  for (const auto& [radius, share] : result.found.certified) {
    radii += fmt::format("{:>8.3g}", radius);
    shares += fmt::format("{:>7.1f}%", 100 * share.value);
  }
  return fmt::format(
      "{}: {} within r, of {} images, alpha {}\n  r        {}\n  certified{}\n  holds if the "
      "classes "
      "were chosen before these votes were drawn\n",
      result.name, result.claim, result.found.images, result.alpha, radii, shares);
}

}  // namespace fedsmooth::cli
