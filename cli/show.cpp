// fedsmooth show EXPERIMENT.toml: the experiment with every default filled in.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace fedsmooth::cli {

void add_show(CLI::App& app, Common& common) {
  auto path = std::make_shared<std::string>();
  Command c(app, common, "show", "print an experiment with every default filled in",
            "  fedsmooth show experiment.toml --certify.n=1000");
  c.argument("experiment", *path, "experiment file");
  c.on_run([path, &common](const Overrides& overrides) {
    Experiment experiment = read_experiment(*path);
    apply_overrides(experiment, overrides);
    const std::string text = format_experiment(experiment);
    if (common.json) {
      fmt::print("{}\n", nlohmann::json{{"experiment", text}}.dump());
    } else {
      fmt::print("{}", text);
    }
    return 0;
  });
}

}  // namespace fedsmooth::cli
