// Error: a mistake of the user in arguments, experiment files, data or models. The command line
// prints it as one line and exits with status 2. Defects of the library are Bugs, see check.h.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

#include <stdexcept>
#include <string>
#include <utility>

namespace fedsmooth {

/// The message has the form `where: what is wrong, with the value; what to do`, on one line.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}

  template <typename... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace fedsmooth
