// What a function refuses, and how it says so.
#pragma once

#include <string>

#include "fedsmooth/base/error.h"

namespace fedsmooth {

/// The message of the Error that `read` throws.
template <typename Function>
std::string refusal(Function read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

}  // namespace fedsmooth
