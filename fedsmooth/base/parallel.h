// A pool of threads, each with independent work. Splitting one operation over threads loses more to
// synchronisation than it gains at these sizes, and collapses when cores are shared.
#pragma once

#include <functional>
#include <memory>

namespace fedsmooth {

/// Returns the number of cores that this process may use.
int available_cores();

/// Threads that live as long as the object. One thread at a time may call run().
class Workers {
 public:
  explicit Workers(int count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int count() const;

  /// Calls job(0) .. job(count - 1), each in its own thread, and waits for all of them. Rethrows
  /// the first exception that a job threw.
  void run(const std::function<void(int)>& job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fedsmooth
