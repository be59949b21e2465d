// Stopping long work: the work calls a Stop from time to time and throws Interrupted if it returns
// true.
#pragma once

#include <functional>
#include <string>

namespace fedsmooth {

/// Returns whether to stop. Called often and from any thread, so it must be fast and thread-safe.
/// An empty Stop means: never.
using Stop = std::function<bool()>;

/// Thrown by work that was stopped, after it saved the state from which it can be resumed. Not a
/// std::exception.
struct Interrupted {
  std::string message = "interrupted";
};

}  // namespace fedsmooth
