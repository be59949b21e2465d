// What all commands share: global options, --section.key=value overrides, and how they end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"

// CLI11 is seen by options.cpp alone: it costs more to compile than all commands together.
namespace CLI {
class App;
}

namespace fedsmooth::cli {

struct Common {
  std::string device = "auto";
  int threads = 0;  // 0: one per core
  bool quiet = false;
  bool json = false;
};

/// `--key value` pairs for the experiment, in the order given.
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// A sub-command: its arguments, and any --section.key=value of the experiment.
class Command {
 public:
  Command(CLI::App& app, Common& common, const std::string& name, const std::string& what,
          const std::string& examples);

  void argument(const std::string& name, std::string& value, const std::string& what,
                bool required = true);
  void arguments(const std::string& name, std::vector<std::string>& values,
                 const std::string& what);
  void option(const std::string& name, std::string& value, const std::string& what);
  void option(const std::string& name, int64_t& value, const std::string& what);
  void option(const std::string& name, double& value, const std::string& what);
  void flag(const std::string& name, bool& value, const std::string& what);
  /// --`name` as a short form of --`key`.
  void alias(const std::string& name, const std::string& key, const std::string& what);

  /// All overrides of this call; an unknown one is an Error with the nearest name.
  Overrides overrides() const;

  /// `run` is called with the overrides when this is the command that was given, and returns the
  /// exit status.
  void on_run(std::function<int(const Overrides&)> run);

 private:
  CLI::App* app_;
  std::vector<std::pair<std::string, std::string>> aliases_;  // option, key
};

void apply_overrides(Experiment& experiment, const Overrides& overrides);

/// Number of threads asked for, or one per core.
int thread_count(const Common& common);

/// Whether the user asked to stop (SIGINT, SIGTERM); a second request ends the process at once.
bool interrupted();
void watch_signals();

/// Thrown when an interrupted command has saved its state; main() exits with 130.
struct Interrupted {
  std::string message;
};

/// Refuses overrides in commands that read no experiment.
void refuse_overrides(const Overrides& overrides);

/// Parses the command line, runs the command and returns its exit status.
int run_command_line(int argc, char** argv);

void add_show(CLI::App& app, Common& common);
void add_certify(CLI::App& app, Common& common);
void add_predict(CLI::App& app, Common& common);
void add_recertify(CLI::App& app, Common& common);
void add_merge(CLI::App& app, Common& common);
void add_plot(CLI::App& app, Common& common);
void add_report(CLI::App& app, Common& common);
void add_bench(CLI::App& app, Common& common);

}  // namespace fedsmooth::cli
