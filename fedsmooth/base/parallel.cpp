#include "fedsmooth/base/parallel.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "fedsmooth/base/error.h"

namespace fedsmooth {

int available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return std::max(1U, std::thread::hardware_concurrency());
  }
  return CPU_COUNT(&allowed);
}

namespace {

// A function of OpenBLAS, or null where another BLAS is in use.
template <typename Function>
Function* openblas(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

bool blas_takes_one_caller_only() {
  auto* parallel = openblas<int()>("openblas_get_parallel");
  return parallel != nullptr && parallel() == 0;
}

}  // namespace

void use_single_threaded_operators() {
  at::set_num_threads(1);
  // LibTorch does not reach into an OpenBLAS that has threads of its own.
  if (auto* set_threads = openblas<void(int)>("openblas_set_num_threads")) set_threads(1);
}

std::string blas_name() {
  auto* config = openblas<char*()>("openblas_get_config");
  auto* core = openblas<char*()>("openblas_get_corename");
  if (config == nullptr || core == nullptr) return at::hasMKL() ? "mkl" : "blas";
  std::istringstream words(config());  // "OpenBLAS 0.3.21 ..."
  std::string name, version;
  words >> name >> version;
  return name + "-" + version + "-" + core();
}

struct Workers::State {
  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void(int)>* job = nullptr;
  int64_t generation = 0;  // counts the calls of run()
  int busy = 0;
  bool stop = false;
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  void work(int worker) {
    at::set_num_threads(1);
    int64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      lock.unlock();
      std::exception_ptr caught;
      try {
        (*job)(worker);
      } catch (...) {
        caught = std::current_exception();
      }
      lock.lock();
      if (caught && !failure) failure = caught;
      if (--busy == 0) changed.notify_all();
    }
  }
};

Workers::Workers(int count) : state_(std::make_unique<State>()) {
  if (count > 1 && blas_takes_one_caller_only()) {
    throw Error(
        "threads: the serial OpenBLAS gives wrong products when several threads call it; install "
        "libopenblas0-pthread or use --threads 1");
  }
  for (int i = 0; i < count; ++i) {
    state_->threads.emplace_back([state = state_.get(), i] { state->work(i); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int Workers::count() const { return static_cast<int>(state_->threads.size()); }

void Workers::run(const std::function<void(int)>& job) {
  std::unique_lock lock(state_->mutex);
  state_->job = &job;
  state_->busy = count();
  state_->failure = nullptr;
  ++state_->generation;
  state_->changed.notify_all();
  state_->changed.wait(lock, [&] { return state_->busy == 0; });
  if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace fedsmooth
