// One way to stop work that takes long: it asks now and then, and throws when told to stop.
#pragma once

#include <functional>
#include <string>

namespace fedsmooth {

/// Whether to stop. Asked often, from any thread. An empty one never says so.
using Stop = std::function<bool()>;

/// Thrown by work that was told to stop, after it saved what can be resumed.
struct Interrupted {
  std::string message = "interrupted";
};

}  // namespace fedsmooth
