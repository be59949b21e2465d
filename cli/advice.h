// Advice that can be pasted into a shell. The library names an option (--resume) or a command
// (`fedsmooth certify RUN`); here it becomes the whole command, by the program's name as it was
// called.
#pragma once

#include <filesystem>
#include <string>

namespace fedsmooth::cli {

struct CommandContext;

/// Remembers how the program was called, on how many ranks.
void keep_command_line(int argc, char** argv, int ranks);
/// The command that was called resumes by --resume. Otherwise repeating it does.
void resume_by_flag();
/// `arguments` resume what was called, in place of the words that were given.
void resume_by(const std::string& arguments);

/// `message` with the whole command wherever it says "with --resume" or "with the same command",
/// and with this program's name in `fedsmooth ...`.
std::string complete_advice(std::string message);

/// Says so where --resume was given and `file`, of the work to resume, is not there.
void note_if_nothing_to_resume(const CommandContext& common, bool resume,
                               const std::filesystem::path& file);

/// Prints that a page can be opened in a browser, with suggest_next()'s exceptions.
void suggest_opening(const CommandContext& common, const std::filesystem::path& page);

/// Prints "next: fedsmooth ARGUMENTS" on stderr, unless --quiet or --json is given.
void suggest_next(const CommandContext& common, const std::string& arguments);

/// Prints the command line that was given, with the command `other` in place of `command`, and
/// `what` as a shell comment; suggest_next()'s exceptions apply.
void suggest_command(const CommandContext& common, const std::string& command,
                     const std::string& other, const std::string& what);

}  // namespace fedsmooth::cli
