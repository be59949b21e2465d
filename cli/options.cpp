#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <csignal>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/version.h"

namespace fedsmooth::cli {
namespace {

volatile std::sig_atomic_t stop_requests = 0;
int exit_status = 0;  // of the command that ran: CLI11 calls it from inside parse()

void request_stop(int) {
  stop_requests = stop_requests + 1;
  if (stop_requests > 1) std::_Exit(130);
}

}  // namespace

Command::Command(CLI::App& app, Common& common, const std::string& name, const std::string& what,
                 const std::string& examples)
    : app_(app.add_subcommand(name, what)) {
  app_->allow_extras();
  app_->option_defaults()->take_last();
  app_->footer("Any key of the experiment can be given as --section.key=value.\n\nExamples:\n" +
               examples);
  app_->add_option("--device", common.device, "auto, cpu or cuda")->default_str("auto");
  app_->add_option("--threads", common.threads, "threads to use; 0: one per core")
      ->default_str("0");
  app_->add_flag("--quiet", common.quiet, "no progress");
  app_->add_flag("--json", common.json, "a machine-readable summary last on stdout");
}

void Command::argument(const std::string& name, std::string& value, const std::string& what,
                       bool required) {
  app_->add_option(name, value, what)->required(required);
}

void Command::arguments(const std::string& name, std::vector<std::string>& values,
                        const std::string& what) {
  app_->add_option(name, values, what)->required()->take_all();
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

void Command::flag(const std::string& name, bool& value, const std::string& what) {
  app_->add_flag("--" + name, value, what);
}

void Command::alias(const std::string& name, const std::string& key, const std::string& what) {
  app_->add_option_function<std::string>(
      "--" + name, [](const std::string&) {}, what + " (" + key + ")");
  aliases_.emplace_back(name, key);
}

Overrides Command::overrides() const {
  Overrides found;
  for (const auto& [option, key] : aliases_) {
    const CLI::Option* given = app_->get_option("--" + option);
    if (given->count() > 0) found.emplace_back(key, given->results().back());
  }
  std::vector<std::string> known = experiment_keys();
  for (const CLI::Option* option : app_->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  }
  const std::vector<std::string> extras = app_->remaining();
  for (size_t i = 0; i < extras.size(); ++i) {
    const std::string& word = extras[i];
    if (word.rfind("--", 0) != 0) throw Error("{}: unexpected argument", word);
    const size_t equals = word.find('=');
    const std::string key = word.substr(2, equals - 2);
    const std::vector<std::string> keys = experiment_keys();
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::string near = nearest(key, known);
      throw Error("--{}: unknown option{}", key,
                  near.empty() ? "" : fmt::format("; did you mean --{}?", near));
    }
    if (equals != std::string::npos) {
      found.emplace_back(key, word.substr(equals + 1));
    } else if (i + 1 < extras.size()) {
      found.emplace_back(key, extras[++i]);
    } else {
      throw Error("--{}: needs a value", key);
    }
  }
  return found;
}

void Command::on_run(std::function<int(const Overrides&)> run) {
  app_->callback([*this, run = std::move(run)] { exit_status = run(overrides()); });
}

void apply_overrides(Experiment& experiment, const Overrides& overrides) {
  for (const auto& [key, value] : overrides) set_key(experiment, key, value);
}

int thread_count(const Common& common) {
  if (common.threads < 0 || common.threads > 4096) {
    throw Error("--threads={}: must be between 0 and 4096", common.threads);
  }
  if (common.device != "auto" && common.device != "cpu") {
    if (common.device != "cuda") {
      throw Error("--device={}: must be auto, cpu or cuda", common.device);
    }
    throw Error("--device=cuda: this build has no CUDA engine; use --device=cpu");
  }
  return common.threads > 0 ? common.threads : available_cores();
}

bool interrupted() { return stop_requests > 0; }

void watch_signals() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void refuse_overrides(const Overrides& overrides) {
  if (!overrides.empty()) throw Error("--{}: this command reads no experiment", overrides[0].first);
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"Certifiably robust federated learning."};
  app.name("fedsmooth");
  app.set_version_flag("--version", fmt::format("fedsmooth {} ({}, LibTorch {})", version(),
                                                commit(), torch_version()));
  app.require_subcommand(1);
  Common common;
  add_certify(app, common);
  add_predict(app, common);
  add_recertify(app, common);
  add_merge(app, common);
  add_report(app, common);
  add_plot(app, common);
  add_show(app, common);
  add_bench(app, common);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw Error("{}", error.what());
  }
  return exit_status;
}

}  // namespace fedsmooth::cli
