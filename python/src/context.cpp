#include "python/src/context.h"

#include "python/src/words.h"

namespace fedsmooth::python {
namespace {

class Shown : public jobs::Progress {
 public:
  explicit Shown(nb::object bar) : bar_(std::move(bar)) {}
  ~Shown() override {
    const nb::gil_scoped_acquire acquired;
    try {
      bar_.attr("close")();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("fedsmooth's progress bar");
    }
    bar_.reset();
  }

  void step(const std::string& note) override {
    const nb::gil_scoped_acquire acquired;
    bar_.attr("step")(nb::str(note.c_str()));
  }

 private:
  nb::object bar_;
};

}  // namespace

// The context borrows Python's functions: its maker must hold them until the job is done.
jobs::Context make_context(const std::string& device, int threads, const StopFlag& stop,
                           const nb::object& progress, const nb::object& warn) {
  jobs::Context context{device, threads};
  if (stop) context.stopped = [stop] { return stop->load(); };
  if (!warn.is_none()) {
    context.warn = [f = warn.ptr()](const std::string& line) {
      const nb::gil_scoped_acquire acquired;
      const nb::handle call(f);  // nb::handle(f)(...) as a statement would declare another f
      constexpr std::string_view kPrefix = "warning: ";  // Python adds this word itself
      const std::string_view text = line;
      call(nb::str(
          in_python_words(text.substr(text.starts_with(kPrefix) ? kPrefix.size() : 0)).c_str()));
    };
  }
  if (!progress.is_none()) {
    context.progress = [f = progress.ptr()](const std::string& what, int64_t done, int64_t total) {
      const nb::gil_scoped_acquire acquired;
      return std::make_unique<Shown>(nb::handle(f)(nb::str(what.c_str()), done, total));
    };
  }
  return context;
}

}  // namespace fedsmooth::python
