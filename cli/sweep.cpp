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

// The experiments of a sweep and what has become of them.
class SweepRuns {
 public:
  SweepRuns(std::vector<NamedExperiment> experiments, fs::path out, const Common& common)
      : all_(std::move(experiments)), out_(std::move(out)), common_(common), thrown_(all_.size()) {}

  size_t size() const { return all_.size(); }
  fs::path folder(size_t i) const { return out_ / all_[i].name; }

  /// Trains and certifies one, from wherever an earlier sweep stopped. Whether it is done now: one
  /// that fails is told and must not stop the others.
  bool attempt(size_t i) {
    const std::string& name = all_[i].name;
    try {
      const bool done = is_done(i);
      if (!common_.quiet) {
        fmt::print(stderr, "{} ({} of {}){}\n", name, i + 1, size(), done ? ": done already" : "");
      }
      if (!done) run(i);
      return true;
    } catch (const Error& error) {
      fmt::print(stderr, "{}: {}\n", name, error.what());
    } catch (const fs::filesystem_error& error) {
      fmt::print(stderr, "{}: {}: {}\n", name, error.path1().string(), error.code().message());
    } catch (const Interrupted&) {
      throw Interrupted{fmt::format("interrupted in {}; the same command goes on", name)};
    }
    return false;
  }

 private:
  bool is_trained(size_t i) const { return fs::exists(folder(i) / "DONE"); }

  bool is_done(size_t i) const {
    const Experiment& experiment = all_[i].experiment;
    return is_trained(i) && start_run(folder(i), experiment, /*resume=*/true).done() &&
           is_certified(folder(i), experiment);
  }

  void run(size_t i) {
    if (!is_trained(i) && !thrown_[i]) train_from(i);
    if (thrown_[i]) std::rethrow_exception(thrown_[i]);
    certify_images({folder(i).string(), "", "", /*resume=*/true}, {}, common_);
  }

  // Trains one, and later ones that can go side by side with it.
  void train_from(size_t i) {
    std::vector<TrainArguments> runs;
    std::vector<size_t> places;
    for (size_t j = i; j < size(); ++j) {
      const bool joins =
          !is_trained(j) && !thrown_[j] && go_side_by_side(all_[i].experiment, all_[j].experiment);
      if (j != i && !joins) continue;
      runs.push_back({all_[j].experiment, folder(j), /*resume=*/true});
      places.push_back(j);
    }
    const std::vector<std::exception_ptr> thrown = train_runs(runs, common_);
    for (size_t j = 0; j < thrown.size(); ++j) thrown_[places[j]] = thrown[j];
  }

  std::vector<NamedExperiment> all_;
  fs::path out_;
  Common common_;
  std::vector<std::exception_ptr> thrown_;  // what a training threw, perhaps before its turn
};

int run_sweep(const Arguments& a, const Overrides& overrides, const Common& common) {
  thread_count(common);  // refuses before the first experiment
  const fs::path out = a.out.empty() ? default_out(a.path) : fs::path(a.out);
  SweepRuns all(list_experiments(a.path, overrides), out, common);
  std::vector<std::string> done;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.attempt(i)) done.push_back(all.folder(i).string());
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
