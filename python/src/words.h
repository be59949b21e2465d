// Messages of the library in the words of Python's API.
#pragma once

#include <string>
#include <string_view>

namespace fedsmooth::python {

/// Returns the message with options of the command line as Python has them: resume=True for
/// --resume, out= for --out, alpha=5 for --alpha=5, train.rounds for --train.rounds. Commands
/// between backticks stay, as the wheel brings the program.
std::string in_python_words(std::string_view message);

}  // namespace fedsmooth::python
