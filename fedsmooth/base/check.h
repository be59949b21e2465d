// Bug: a state that is impossible unless the library has a defect. The command line reports it as a
// bug and exits with status 1. Mistakes of the user are Errors, see error.h.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <utility>

namespace fedsmooth {

class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// check(condition, "multiply: {} columns", columns): throws a Bug unless the condition holds.
template <typename... Args>
void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    throw Bug(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace fedsmooth
