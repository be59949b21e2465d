#include "cli/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/options.h"
#include "cli/progress.h"
#include "fedsmooth/base/text.h"

namespace fedsmooth::cli {
namespace {

struct CommandLine {
  std::string program = "fedsmooth", launcher;
  std::vector<std::string> words;
  std::string resuming;  // what resumes it, without the launcher
};
CommandLine command_line;  // set before any thread is started

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

void keep_command_line(int argc, char** argv, int ranks) {
  command_line = {shell_word(argv[0])};
  if (ranks > 1) command_line.launcher = fmt::format("mpirun -n {} ", ranks);
  for (int i = 1; i < argc; ++i) command_line.words.push_back(shell_word(argv[i]));
  resume_by(fmt::format("{}", fmt::join(command_line.words, " ")));
}

void resume_by_flag() {
  if (std::ranges::find(command_line.words, "--resume") == command_line.words.end()) {
    command_line.resuming += " --resume";
  }
}

void resume_by(const std::string& arguments) {
  command_line.resuming = command_line.program + " " + arguments;
}

std::string complete_advice(std::string message) {
  const std::string resuming =
      fmt::format("with `{}{}`", command_line.launcher, command_line.resuming);
  replace_all(message, "`fedsmooth ", "`" + command_line.program + " ");
  replace_all(message, "with --resume", resuming);
  replace_all(message, "with the same command", resuming);
  return message;
}

void note_if_nothing_to_resume(const CommandContext& common, bool resume,
                               const std::filesystem::path& file) {
  if (!resume || std::filesystem::exists(file)) return;
  common.context.note(fmt::format("{}: nothing to resume; starts anew", file.string()));
}

void suggest_opening(const CommandContext& common, const std::filesystem::path& page) {
  if (common.quiet || common.json || page.extension() != ".html") return;
  print_status(fmt::format("next: open {} in a browser", page.string()));
}

void suggest_next(const CommandContext& common, const std::string& arguments) {
  if (common.quiet || common.json) return;
  print_status(fmt::format("next: {} {}", command_line.program, arguments));
}

void suggest_command(const CommandContext& common, const std::string& command,
                     const std::string& other, const std::string& what) {
  std::vector<std::string> words = command_line.words;
  const auto named = std::ranges::find(words, command);
  if (named == words.end()) return;
  *named = other;
  suggest_next(common, fmt::format("{}    # {}", fmt::join(words, " "), what));
}

}  // namespace fedsmooth::cli
