// What all commands share: global options, --section.key=value overrides, and how they end.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"

// CLI11 is seen by options.cpp and completion.cpp alone: it costs more to compile than all commands
// together.
namespace CLI {
class App;
}
namespace fedsmooth::jobs {
struct TableOptions;
}

namespace fedsmooth::cli {

struct CommandContext {
  jobs::Context context;
  bool quiet = false;
  bool json = false;
  int64_t rank_timeout = 1800;  // seconds
};

/// Prints the result of a command: `summary` as JSON with --json, else `text`.
void print_result(const CommandContext& common, const nlohmann::json& summary,
                  const std::string& text);

/// A sub-command and its arguments. Whether it also takes any --section.key=value of the experiment
/// is decided by what it runs.
class Command {
 public:
  Command(CLI::App& app, CommandContext& common, const std::string& name, const std::string& what,
          const std::string& examples);

  void argument(const std::string& name, std::string& value, const std::string& what,
                bool required = true);
  void arguments(const std::string& name, std::vector<std::string>& values, const std::string& what,
                 bool required = true);
  void option(const std::string& name, std::string& value, const std::string& what);
  void option(const std::string& name, int64_t& value, const std::string& what);
  void option(const std::string& name, double& value, const std::string& what);
  /// --`name` A B ..., which may be given several times.
  void options(const std::string& name, std::vector<std::string>& values, const std::string& what);
  /// --`name` A, which may be given several times: for commands that end in a list of arguments.
  void repeated_option(const std::string& name, std::vector<std::string>& values,
                       const std::string& what);
  void flag(const std::string& name, bool& value, const std::string& what);
  /// Takes the removed --`name`, which is not listed, for --`key`=true, which is refused.
  void removed_flag(const std::string& name, const std::string& key);
  /// --`name` is called --`now` today: it is not listed, and refused with the new name.
  void renamed_option(const std::string& name, const std::string& now);
  /// --`name` as a short form of --`key`.
  void alias(const std::string& name, const std::string& key, const std::string& what);
  /// The command can be run on many ranks. Others are refused there.
  void allow_ranks();

  /// `run` is called with the overrides when this is the command that was given, and returns the
  /// exit status. An unknown option is an Error with the nearest name.
  void on_run(std::function<int(const Overrides&)> run);
  /// `run` is called if this is the command that was given. Overrides are refused: the command
  /// reads no experiment.
  void on_run(std::function<int()> run);

 private:
  void run_checked(const std::function<int()>& run) const;
  void refuse_extras() const;

  CLI::App* app_;
  CommandContext* common_;
  bool takes_ranks_ = false;
  std::string examples_;
  std::shared_ptr<Overrides> overrides_ = std::make_shared<Overrides>();
};

/// --norm and --values, of the commands that show radii.
void add_norm(Command& command, jobs::TableOptions& options);

/// Whether the user asked to stop (SIGINT, SIGTERM, or SIGUSR1, which mpirun hands on without
/// ending the ranks itself); a second request ends the process at once.
bool interrupted();
void watch_signals();

/// Parses the command line, runs the command and returns its exit status.
int run_command_line(int argc, char** argv, Ranks& ranks);

void add_train(CLI::App& app, CommandContext& common);
void add_sweep(CLI::App& app, CommandContext& common);
void add_partition(CLI::App& app, CommandContext& common);
void add_show(CLI::App& app, CommandContext& common);
void add_certify(CLI::App& app, CommandContext& common);
void add_predict(CLI::App& app, CommandContext& common);
void add_attack(CLI::App& app, CommandContext& common);
void add_recertify(CLI::App& app, CommandContext& common);
void add_merge(CLI::App& app, CommandContext& common);
void add_plot(CLI::App& app, CommandContext& common);
void add_report(CLI::App& app, CommandContext& common);
void add_compare(CLI::App& app, CommandContext& common);
void add_verify(CLI::App& app, CommandContext& common);
void add_data(CLI::App& app, CommandContext& common);
void add_bench(CLI::App& app, CommandContext& common);
void add_completion(CLI::App& app, CommandContext& common);
void add_conformal(CLI::App& app, CommandContext& common);

}  // namespace fedsmooth::cli
