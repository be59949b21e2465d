// Threads of our own, one per core, each calling single-threaded operators: operator threads lose
// more to synchronisation than they gain at these sizes, and collapse when cores are shared.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace fedsmooth {

/// Cores this process may use.
int available_cores();

/// Makes LibTorch and its BLAS run in the thread that calls them, now and in all later threads.
void use_single_threaded_operators();

/// The BLAS under LibTorch and the kernels it chose for this CPU, which decide how products round.
std::string blas_name();

/// Threads that live as long as the object.
class Workers {
 public:
  /// Several are refused on a BLAS that is not safe to call from several threads: Debian's serial
  /// OpenBLAS shares one work buffer between callers and then gives wrong products.
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
