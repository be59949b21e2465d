// Threads of our own, one per core, each with work of its own: threads within an operation lose
// more to synchronisation than they gain at these sizes, and collapse when cores are shared.
#pragma once

#include <functional>
#include <memory>

namespace fedsmooth {

/// Cores this process may use.
int available_cores();

/// Threads that live as long as the object.
class Workers {
 public:
  explicit Workers(int count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int count() const;

  /// Calls job(0) .. job(count - 1), each in its own thread, and waits. The first exception of any
  /// of them is thrown here.
  void run(const std::function<void(int)>& job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fedsmooth
