// What a function refuses, and how it says so.
#pragma once

#include <string>

#include "fedsmooth/base/error.h"

namespace fedsmooth {

/// Returns the message of the Error that `action` throws.
template <typename Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

}  // namespace fedsmooth
