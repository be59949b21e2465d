#include "cli/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/advice.h"
#include "cli/progress.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"

namespace fedsmooth::cli {
namespace {

std::atomic<int> stop_requests = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // as a signal handler needs it
bool at_terminal = false;                              // set before signals are watched
int exit_status = 0;  // of the command that ran: CLI11 calls it from inside parse()

void request_stop(int) {
  if (++stop_requests > 1) std::_Exit(130);
  if (!at_terminal) return;
  constexpr std::string_view kWord = "\nstopping; once more to stop without saving\n";
  const int error = errno;  // of what the signal came in between
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWord.data(), kWord.size());
  errno = error;
}

// Collects each value as it is parsed, so that overrides keep the order of the command line.
CLI::Option* add_override(CLI::App& app, const std::shared_ptr<Overrides>& overrides,
                          const std::string& option, const std::string& key,
                          const std::string& what) {
  const auto collect = [overrides, key](const std::string& value) {
    overrides->emplace_back(key, value);
  };
  return app.add_option_function<std::string>("--" + option, collect, what)->trigger_on_parse();
}

void check_ranks(const CommandContext& common, bool taken, const std::string& command) {
  if (common.rank_timeout < 1) {
    throw Error("--rank-timeout={}: must be positive", common.rank_timeout);
  }
  Ranks& ranks = jobs::ranks_of(common.context);
  ranks.set_patience(std::chrono::seconds(common.rank_timeout));
  if (ranks.size() > 1 && !taken) {
    throw Error("{}: runs in one process; start it without mpirun", command);
  }
}

// What the job says goes to the terminal.
void listen(CommandContext& common) {
  common.context.stopped = interrupted;
  common.context.warn = [](const std::string& line) { print_status(complete_advice(line)); };
  if (common.quiet) return;
  common.context.note = common.context.warn;
  common.context.progress = show_progress;
}

// Before the command or after it.
void add_common(CLI::App& app, CommandContext& common) {
  app.add_option("--device", common.context.device, "auto, cpu or cuda")->default_str("auto");
  app.add_option("--threads", common.context.threads, "threads to use; 0: one per core")
      ->default_str("0");
  app.add_flag("--quiet", common.quiet, "no progress and no hints, only the result");
  app.add_flag("--json", common.json, "a machine-readable summary last on stdout");
}

// CLI11 would only say that a sub-command is required.
void check_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (word.empty() || std::find(names.begin(), names.end(), word) != names.end()) return;
  const std::string near = nearest(word, names);
  throw Error(
      "{}: no such command; {}", word,
      near.empty() ? "`fedsmooth --help` lists them" : fmt::format("did you mean \"{}\"?", near));
}

// The first word that is neither an option nor the value of a common one.
std::string first_argument(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--device" || word == "--threads") {
      ++i;
    } else if (!word.starts_with('-')) {
      return std::string(word);
    }
  }
  return {};
}

// In CLI11's order: last word first. `--key=` becomes two words, because CLI11 would take the word
// after it for its value.
std::vector<std::string> reversed_words(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_empty_value = word.rfind("--", 0) == 0 && word.find('=') == word.size() - 1;
    words.push_back(is_empty_value ? word.substr(0, word.size() - 1) : word);
    if (is_empty_value) words.emplace_back();
  }
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

void print_result(const CommandContext& common, const nlohmann::json& summary,
                  const std::string& text) {
  if (common.json) {
    fmt::print("{}\n", dump_json(summary));
  } else {
    fmt::print("{}", complete_advice(text));
  }
}

Command::Command(CLI::App& app, CommandContext& common, const std::string& name,
                 const std::string& what, const std::string& examples)
    : app_(app.add_subcommand(name, what)), common_(&common), examples_(examples) {
  app_->allow_extras();  // refuse_extras() knows more about them than CLI11
  app_->option_defaults()->take_last();
  add_common(*app_, common);
}

void Command::argument(const std::string& name, std::string& value, const std::string& what,
                       bool required) {
  app_->add_option(name, value, what)->required(required);
}

void Command::arguments(const std::string& name, std::vector<std::string>& values,
                        const std::string& what, bool required) {
  app_->add_option(name, values, what)->required(required)->take_all();
}

void Command::option(const std::string& name, std::string& value, const std::string& what) {
  app_->add_option("--" + name, value, what);
}

void Command::option(const std::string& name, int64_t& value, const std::string& what) {
  app_->add_option("--" + name, value, what)->capture_default_str();
}

void Command::option(const std::string& name, double& value, const std::string& what) {
  app_->add_option("--" + name, value, what);
}

void Command::options(const std::string& name, std::vector<std::string>& values,
                      const std::string& what) {
  app_->add_option("--" + name, values, what)->take_all();
}

void Command::repeated_option(const std::string& name, std::vector<std::string>& values,
                              const std::string& what) {
  app_->add_option("--" + name, values, what)->take_all()->allow_extra_args(false);
}

void Command::flag(const std::string& name, bool& value, const std::string& what) {
  app_->add_flag("--" + name, value, what);
}

void Command::removed_flag(const std::string& name, const std::string& key) {
  const auto set = [overrides = overrides_, key] { overrides->emplace_back(key, "true"); };
  app_->add_flag_callback("--" + name, set)->group("");
}

void Command::renamed_option(const std::string& name, const std::string& now) {
  const auto refuse = [name, now](const std::string&) {
    throw Error("--{}: is called --{} now", name, now);
  };
  app_->add_option_function<std::string>("--" + name, refuse)->group("");
}

void Command::alias(const std::string& name, const std::string& key, const std::string& what) {
  add_override(*app_, overrides_, name, key, what + " (" + key + ")");
}

void Command::allow_ranks() {
  takes_ranks_ = true;
  option("rank-timeout", common_->rank_timeout,
         "seconds without a word from another rank after which all are ended");
}

void Command::refuse_extras() const {
  const std::vector<std::string> extras = app_->remaining();
  if (extras.empty()) return;
  const std::string& word = extras[0];
  if (word.rfind("--", 0) != 0) throw Error("{}: unexpected argument", word);
  const std::string option = word.substr(2, word.find('=') - 2);
  const std::vector<std::string> keys = experiment_keys();
  if (std::find(keys.begin(), keys.end(), option) != keys.end()) {
    throw Error("--{}: unknown option; {} reads no experiment", option, app_->get_name());
  }
  std::vector<std::string> known;
  for (const CLI::Option* one : app_->get_options()) {
    for (const std::string& name : one->get_lnames()) known.push_back(name);
  }
  std::string near = nearest(option, known);
  if (near.empty()) near = key_ending_in(option);
  throw Error("--{}: unknown option{}", option,
              near.empty() ? "" : fmt::format("; did you mean --{}?", near));
}

void Command::run_checked(const std::function<int()>& run) const {
  refuse_extras();
  jobs::check_context(common_->context);
  check_ranks(*common_, takes_ranks_, app_->get_name());
  listen(*common_);
  if (app_->get_option_no_throw("--resume") != nullptr) resume_by_flag();
  exit_status = run();
}

void Command::on_run(std::function<int(const Overrides&)> run) {
  // Not listed: they are many, and `fedsmooth show` prints them all.
  for (const std::string& key : experiment_keys()) {
    add_override(*app_, overrides_, key, key, "")->group("");
  }
  app_->footer("Any key of the experiment can be given as --section.key=value.\n\nExamples:\n" +
               examples_);
  app_->callback([*this, run = std::move(run)] { run_checked([&] { return run(*overrides_); }); });
}

void Command::on_run(std::function<int()> run) {
  app_->footer("Examples:\n" + examples_);
  app_->callback([*this, run = std::move(run)] { run_checked(run); });
}

void add_norm(Command& command, jobs::TableOptions& options) {
  command.option("norm", options.norm, "norm of the radii: l2 (default), linf or l1");
  command.option(
      "values", options.values,
      "numbers in an image, for --norm linf and tables that do not say; 3072 for CIFAR-10");
}

bool interrupted() { return stop_requests > 0; }

void watch_signals() {
  at_terminal = isatty(STDERR_FILENO) != 0;
  struct sigaction action = {};
  action.sa_handler = request_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);  // a write beyond the limit then fails as on a full disk
}

int run_command_line(int argc, char** argv, Ranks& ranks) {
  CLI::App app{"Certifiably robust federated learning."};
  app.name("fedsmooth");
  app.set_version_flag("--version", fmt::format("fedsmooth {} ({})", version(), commit()));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  fedsmooth train experiments/quickstart/smoothadv.toml --out runs/smoothadv\n"
      "  fedsmooth certify runs/smoothadv --every 20\n"
      "  fedsmooth report runs/smoothadv");
  CommandContext common;
  common.context.ranks = &ranks;
  app.option_defaults()->take_last();
  add_common(app, common);
  add_train(app, common);
  add_certify(app, common);
  add_predict(app, common);
  add_conformal(app, common);
  add_attack(app, common);
  add_recertify(app, common);
  add_merge(app, common);
  add_report(app, common);
  add_plot(app, common);
  add_compare(app, common);
  add_verify(app, common);
  add_sweep(app, common);
  add_partition(app, common);
  add_show(app, common);
  add_data(app, common);
  add_bench(app, common);
  add_completion(app, common);
  if (argc == 1) {
    fmt::print("{}", app.help());
    return 0;
  }
  check_command(app, first_argument(argc, argv));
  try {
    app.parse(reversed_words(argc, argv));
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ArgumentMismatch&) {
    // Only an option at the very end lacks its value; CLI11 does not name those that it hides.
    throw Error("{}: needs a value", argv[argc - 1]);
  } catch (const CLI::ParseError& error) {
    throw Error("{}", error.what());
  }
  return exit_status;
}

}  // namespace fedsmooth::cli
