// Votes of one base classifier, as Python holds them: a sampler, what it samples, and how a call is
// interrupted. The guards of a certificate are in the library, below this.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fedsmooth/fedsmooth.h"
#include "python/src/arrays.h"
#include "python/src/background.h"

namespace fedsmooth::python {

/// A lock that knows no owner, so that a thread that has it is refused too.
class Flag {
 public:
  bool try_lock() { return !set_.exchange(true); }
  void lock() = delete;
  void unlock() { set_ = false; }

 private:
  std::atomic<bool> set_ = false;
};

class Votes {
 public:
  /// Votes of a Python function from float32 [batch, C, H, W] to float32 [batch, classes], both
  /// NumPy's. It is called in the thread that asks for votes: torch keeps its modes per thread.
  Votes(nb::callable f, int64_t classes, int64_t batch, const std::string& description,
        const std::string& noise);
  /// Votes of a function that also runs on the GPU: `on_gpu` takes and gives torch tensors there,
  /// float32 and contiguous, of images of shape `input`, on `stream` of GPU number `gpu`. Where
  /// that GPU can be used, noise is drawn and votes are counted there, and `on_gpu` is what is
  /// checked and probed; else `f` is.
  Votes(nb::callable f, int64_t classes, int64_t batch, const std::string& description,
        const std::string& noise, nb::callable on_gpu, const Shape& input, int gpu,
        uintptr_t stream);
  /// Votes of a model, by our engine on `device`.
  Votes(const Model& model, const std::string& device, int threads, const std::string& noise);

  /// Does `work` with the sampler and without the GIL. An Error while another call has it, be it
  /// one that f itself makes: a sampler is for one thread at a time.
  template <typename Work>
  auto with_sampler(Work work) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock) throw Error("votes of this classifier are being counted; make another Smooth of it");
    if (stop_) return do_in_background(stop_, [&] { return work(*sampler_); });
    const nb::gil_scoped_release released;
    return work(*sampler_);
  }

  /// Throws an Error unless f takes images of this shape, [C, H, W]. A function takes any.
  void check_shape(const Sizes& image) const;
  const std::shared_ptr<Sampler>& sampler() const { return sampler_; }
  /// Python's function, if it is one's votes: it may lead back to who holds this.
  const std::shared_ptr<nb::callable>& function() const { return function_; }
  const std::shared_ptr<nb::callable>& function_on_gpu() const { return on_gpu_; }
  /// Whether noise is drawn and votes are counted on the GPU.
  bool counts_on_gpu() const { return on_gpu_ != nullptr; }
  /// Lets go of it. No votes can be asked for afterwards.
  void clear();
  /// Null: Python's function is called, and with it signals are heard.
  const StopFlag& stop() const { return stop_; }

 private:
  Flag busy_;
  StopFlag stop_;
  std::shared_ptr<nb::callable> function_, on_gpu_;
  std::shared_ptr<Sampler> sampler_;
  std::optional<Shape> input_;  // of a model's images
};

void bind_votes(nb::module_& m);
void bind_models(nb::module_& m);
void bind_statistics(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_compare(nb::module_& m);
void bind_conformal(nb::module_& m);
void bind_training(nb::module_& m);
void bind_federation(nb::module_& m);
void bind_reports(nb::module_& m);
void bind_tools(nb::module_& m);
void bind_program(nb::module_& m);

/// one-sided or multiclass.
RadiusKind parse_radius(const std::string& name);
}  // namespace fedsmooth::python
