// fedsmooth sweep FOLDER_OR_FILE: trains and certifies many experiments, and reports on all.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/certification.h"
#include "cli/comparison.h"
#include "cli/training.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/config/run.h"
#include "fedsmooth/config/sweep.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string path, out;
};

std::vector<fs::path> find_files(const fs::path& path) {
  if (!fs::exists(path)) throw Error("{}: no such file or folder", path.string());
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  if (files.empty()) throw Error("{}: no .toml files here", path.string());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<NamedExperiment> list_experiments(const fs::path& path, const Overrides& overrides) {
  std::vector<NamedExperiment> all;
  std::set<std::string> names;
  for (const fs::path& file : find_files(path)) {
    Sweep sweep = read_sweep(file);
    for (const auto& [key, value] : overrides) set_key(sweep, key, value);
    for (NamedExperiment& one : expand(sweep)) {
      if (!names.insert(one.name).second) {
        throw Error("{}: two experiments are called {}", path.string(), one.name);
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

// runs/NAME for the folder or file NAME.
fs::path default_out(const fs::path& path) {
  fs::path name = fs::weakly_canonical(path);
  return fs::path("runs") / (fs::is_directory(path) ? name.filename() : name.stem());
}

bool is_done(const NamedExperiment& one, const fs::path& folder) {
  return fs::exists(folder / "DONE") && start_run(folder, one.experiment, /*resume=*/true).done() &&
         is_certified(folder, one.experiment);
}

// Trains and certifies, from wherever an earlier sweep stopped.
void run_experiment(const NamedExperiment& one, const fs::path& folder, const Common& common) {
  train_run(one.experiment, folder, /*resume=*/true, common);
  Common on_cpu = common;
  on_cpu.device = "cpu";
  certify_images({folder.string(), "", "", /*resume=*/true}, {}, on_cpu);
}

// Whether it is done now; one that fails is told and must not stop the others.
bool try_experiment(const NamedExperiment& one, const fs::path& folder, const std::string& place,
                    const Common& common) {
  try {
    const bool done = is_done(one, folder);
    if (!common.quiet) {
      fmt::print(stderr, "{} ({}){}\n", one.name, place, done ? ": done already" : "");
    }
    if (!done) run_experiment(one, folder, common);
    return true;
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", one.name, error.what());
  } catch (const fs::filesystem_error& error) {
    fmt::print(stderr, "{}: {}: {}\n", one.name, error.path1().string(), error.code().message());
  } catch (const Interrupted&) {
    throw Interrupted{fmt::format("interrupted in {}; the same command goes on", one.name)};
  }
  return false;
}

int run_sweep(const Arguments& a, const Overrides& overrides, const Common& common) {
  thread_count(common);  // refuses before the first experiment
  const std::vector<NamedExperiment> all = list_experiments(a.path, overrides);
  const fs::path out = a.out.empty() ? default_out(a.path) : fs::path(a.out);
  std::vector<std::string> done;
  for (size_t i = 0; i < all.size(); ++i) {
    const fs::path folder = out / all[i].name;
    const std::string place = fmt::format("{} of {}", i + 1, all.size());
    if (try_experiment(all[i], folder, place, common)) done.push_back(folder.string());
  }
  const size_t failed = all.size() - done.size();
  if (!done.empty()) {
    const fs::path page = out / "report.html";
    const std::vector<ReportRun> runs = load_runs(done);
    write_file(page, render_report(runs));
    if (common.json) {
      fmt::print(
          "{}\n",
          nlohmann::json{{"report", page.string()}, {"runs", done}, {"failed", failed}}.dump());
    } else if (!common.quiet) {
      fmt::print("{}\n{}\n", render_comparison(runs), page.string());
    }
  }
  if (failed > 0) throw Error("sweep: {} of {} experiments failed", failed, all.size());
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, Common& common) {
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "sweep", "train and certify many experiments, and report on all of them",
            "  fedsmooth sweep experiments/quickstart\n"
            "  fedsmooth sweep experiments/paper/homogeneous.toml --smoothing.sigma=0.25");
  c.argument("folder_or_file", a->path, "folder of experiment files, or one file");
  c.option("out", a->out, "where the run folders go; runs/NAME if left out");
  c.on_run([a, &common](const Overrides& overrides) { return run_sweep(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
