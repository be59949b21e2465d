// Native work that Ctrl-C ends. Python delivers signals to its main thread between two bytecodes,
// and here there are none: the work runs in a thread of its own while the caller's thread asks.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>

namespace fedsmooth::python {

namespace nb = nanobind;

/// What work asks whether to stop. Any thread may.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

/// Does `work` without the GIL and returns what it returns. If a signal handler throws, as Ctrl-C's
/// does, the flag is set, the work ends by an exception of its own, and the handler's is thrown.
/// With the GIL.
template <typename Work>
auto do_in_background(const StopFlag& stop, Work work) {
  constexpr auto kInterval = std::chrono::milliseconds(50);
  *stop = false;
  std::optional<nb::python_error> interrupt;
  std::future<decltype(work())> done;
  {
    const nb::gil_scoped_release released;
    done = std::async(std::launch::async, std::move(work));
    while (done.wait_for(kInterval) != std::future_status::ready) {
      if (interrupt) continue;
      const nb::gil_scoped_acquire acquired;
      if (PyErr_CheckSignals() == 0) continue;
      interrupt.emplace();
      *stop = true;
    }
  }
  if (!interrupt) return done.get();
  try {
    done.get();
  } catch (...) {
  }
  throw std::move(*interrupt);
}

}  // namespace fedsmooth::python
