// fedsmooth completion bash|fish|zsh|man: completion for the shell and the manual page, from the
// tables that --help and the experiment file have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/version.h"

namespace fedsmooth::cli {
namespace {

using Options = std::vector<const CLI::Option*>;

bool is_listed(const CLI::Option& option) { return !option.get_group().empty(); }
bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Those with a name, or the positional ones.
Options options_of(const CLI::App& app, bool positional) {
  Options chosen;
  for (const CLI::Option* option : app.get_options()) {
    if (is_listed(*option) && option->get_positional() == positional) chosen.push_back(option);
  }
  return chosen;
}

// Overrides are options that are not listed.
bool takes_keys(const CLI::App& app) { return app.get_option_no_throw("--seed") != nullptr; }

std::string names_of(const CLI::App& app) {
  std::string names;
  for (const CLI::Option* option : options_of(app, /*positional=*/false)) {
    for (const std::string& name : option->get_lnames()) names += " --" + name;
  }
  return names;
}

// The words of a command's examples, which its footer ends with.
std::string examples_of(const CLI::App& app) {
  const std::string footer = app.get_footer();
  const size_t at = footer.find("Examples:\n");
  return at == std::string::npos ? "" : footer.substr(at + 10);
}

std::string bash_completion(const CLI::App& app) {
  std::string keys, commands, cases;
  for (const std::string& key : experiment_keys()) keys += fmt::format(" --{}=", key);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands += " " + command->get_name();
    cases += fmt::format("    {}) words=\"{}{}\" ;;\n", command->get_name(),
                         names_of(*command).substr(1), takes_keys(*command) ? " $keys" : "");
  }
  return fmt::format(R"(# Completion of fedsmooth for bash; written by `fedsmooth completion bash`.
_fedsmooth() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command= words i
  local commands="{0}"
  local keys="{1}"
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ " $commands " == *" ${{COMP_WORDS[i]}} "* ]] && command=${{COMP_WORDS[i]}} && break
  done
  case $command in
{2}    *) words="{3}" ;;
  esac
  COMPREPLY=()
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
  elif [[ -z $command ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$word"))
  fi
}}
complete -o default -F _fedsmooth fedsmooth
)",
                     commands.substr(1), keys.substr(1), cases, names_of(app).substr(1));
}

// A word in single quotes. Both fish and zsh read '\'' as a quote within it.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// "'--out:table to write' ..." as zsh's _describe reads it, a line each.
std::string described_options(const CLI::App& app) {
  std::string lines;
  for (const CLI::Option* option : options_of(app, /*positional=*/false)) {
    for (const std::string& name : option->get_lnames()) {
      lines += fmt::format("      {}\n", quoted("--" + name + ":" + option->get_description()));
    }
  }
  return lines;
}

std::string zsh_completion(const CLI::App& app) {
  std::string keys, commands, cases;
  for (const std::string& key : experiment_keys()) keys += fmt::format(" --{}=", key);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands +=
        fmt::format("    {}\n", quoted(command->get_name() + ":" + command->get_description()));
    cases += fmt::format("    {}) flags=(\n{}    ){} ;;\n", command->get_name(),
                         described_options(*command), takes_keys(*command) ? " takes_keys=1" : "");
  }
  return fmt::format(R"(#compdef fedsmooth
# Completion of fedsmooth for zsh; written by `fedsmooth completion zsh`.
_fedsmooth() {{
  local command= takes_keys= word
  local -a verbs flags keys
  verbs=(
{0}  )
  keys=({1})
  for word in ${{words[2,CURRENT-1]}}; do
    (( ${{verbs[(I)${{(b)word}}:*]}} )) && command=$word && break
  done
  case $command in
{2}    *) flags=(
{3}    ) ;;
  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option flags
    [[ -n $takes_keys ]] && compadd -S '' -a keys
  elif [[ -z $command ]]; then
    _describe command verbs
  else
    _files
  fi
}}
# As a function of fpath this file is the function's body; otherwise it is sourced.
if [[ ${{zsh_eval_context[-1]}} == loadautofunc ]]; then
  _fedsmooth "$@"
else
  compdef _fedsmooth fedsmooth
fi
)",
                     commands, keys.substr(1), cases, described_options(app));
}

// One `complete` for each option, which applies where `condition` holds.
std::string fish_options(const CLI::App& app, const std::string& condition) {
  std::string lines;
  for (const CLI::Option* option : options_of(app, /*positional=*/false)) {
    for (const std::string& name : option->get_lnames()) {
      lines += fmt::format("complete -c fedsmooth -n \"{}\" -l {}{} -d {}\n", condition, name,
                           takes_value(*option) ? " -r" : "", quoted(option->get_description()));
    }
  }
  return lines;
}

std::string fish_completion(const CLI::App& app) {
  const std::string kSeen = "__fish_seen_subcommand_from ", kNone = "not " + kSeen + "$commands";
  std::vector<std::string> names, with_keys;
  std::string lines = fish_options(app, kNone);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string& name = names.emplace_back(command->get_name());
    lines += fmt::format("complete -c fedsmooth -n \"{}\" -f -a {} -d {}\n", kNone, name,
                         quoted(command->get_description()));
    lines += fish_options(*command, kSeen + name);
    if (takes_keys(*command)) with_keys.push_back(name);
  }
  for (const std::string& key : experiment_keys()) {
    lines += fmt::format("complete -c fedsmooth -n \"{}{}\" -l {} -r\n", kSeen,
                         fmt::join(with_keys, " "), key);
  }
  return fmt::format(
      "# Completion of fedsmooth for fish; written by `fedsmooth completion fish`.\n"
      "set -l commands {}\n{}",
      fmt::join(names, " "), lines);
}

// Text for troff: a backslash, a hyphen, and a line that begins with a dot or an apostrophe are
// special there.
std::string troff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins_line = i == 0 || text[i - 1] == '\n';
    if (begins_line && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string describe_options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : options_of(app, /*positional=*/true)) {
    text += fmt::format(".TP\n.I {}\n{}\n", troff(option->get_name(true)),
                        troff(option->get_description()));
  }
  for (const CLI::Option* option : options_of(app, /*positional=*/false)) {
    const std::string name = "--" + option->get_lnames().at(0);
    const bool is_common =
        app.get_parent() != nullptr && app.get_parent()->get_option_no_throw(name) != nullptr;
    if (is_common) continue;
    text +=
        fmt::format(".TP\n.B {}{}\n{}\n", troff(name), takes_value(*option) ? " \\fIVALUE\\fR" : "",
                    troff(option->get_description()));
  }
  return text;
}

std::string describe_keys() {
  std::string text;
  const Experiment standard;
  for (const std::string& key : experiment_keys()) {
    text += fmt::format("{} = {}\n", key, show_key(standard, key));
  }
  return text;
}

std::string manual_page(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH FEDSMOOTH 1 \"\" \"fedsmooth {}\"\n.SH NAME\nfedsmooth \\- certifiably robust federated "
      "learning\n.SH SYNOPSIS\n.B fedsmooth\n.I command\n[\\fIargument\\fR ...] "
      "[\\fB\\-\\-option\\fR ...] [\\fB\\-\\-section.key=value\\fR ...]\n.SH OPTIONS OF EVERY "
      "COMMAND\n{}.SH COMMANDS\n",
      version(), describe_options(app));
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    text += fmt::format(".SS {}\n{}\n{}.PP\nExamples:\n.PP\n.nf\n{}\n.fi\n", command->get_name(),
                        troff(command->get_description()), describe_options(*command),
                        troff(examples_of(*command)));
  }
  return text + fmt::format(
                    ".SH KEYS\nAny key of an experiment file is an option of the commands that "
                    "read one. Keys and their defaults:\n.PP\n.nf\n{}.fi\n.SH EXIT STATUS\n0: "
                    "done. 2: a mistake of the user, in one line on standard error. 1: a bug. 130: "
                    "interrupted, with the state saved.\n",
                    troff(describe_keys()));
}

}  // namespace

void add_completion(CLI::App& app, CommandContext& common) {
  auto what = std::make_shared<std::string>();
  Command c(app, common, "completion", "print the completion for a shell, or the manual page",
            "  fedsmooth completion bash > ~/.local/share/bash-completion/completions/fedsmooth\n"
            "  fedsmooth completion fish > ~/.config/fish/completions/fedsmooth.fish\n"
            "  fedsmooth completion zsh > ~/.zsh/_fedsmooth   # a folder of fpath\n"
            "  fedsmooth completion man > fedsmooth.1");
  c.argument("what", *what, "bash, fish, zsh or man");
  c.on_run([what, &app] {
    const std::map<std::string, std::string (*)(const CLI::App&)> writers = {
        {"bash", bash_completion},
        {"fish", fish_completion},
        {"zsh", zsh_completion},
        {"man", manual_page}};
    const auto writer = writers.find(*what);
    if (writer == writers.end()) {
      throw Error("completion {}: there are bash, fish, zsh and man", *what);
    }
    fmt::print("{}", writer->second(app));
    return 0;
  });
}

}  // namespace fedsmooth::cli
