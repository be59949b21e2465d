// fedsmooth._core: the library as the Python package uses it. Users call the functions of
// python/fedsmooth, which convert their arguments for this module. The library still makes all of
// its checks.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <filesystem>

#include "fedsmooth/base/version.h"
#include "python/src/votes.h"
#include "python/src/words.h"

namespace fedsmooth::python {
namespace {

// Translates library exceptions. `type` is fedsmooth.Error, which the module holds.
void translate_error(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyErr_SetString(static_cast<PyObject*>(type), in_python_words(error.what()).c_str());
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string said = error.path1().string() + ": " + error.code().message();
    PyErr_SetString(static_cast<PyObject*>(type), said.c_str());
  }
}

}  // namespace

// nanobind tries the exception that was registered last first, so derived ones are registered last.
NB_MODULE(_core, m) {
  m.doc() = "The native part of fedsmooth.";
  m.attr("version") = version().c_str();
  m.attr("commit") = commit().c_str();
  const nb::exception<Error> error(m, "Error", PyExc_ValueError);
  nb::register_exception_translator(translate_error, error.ptr());
  const nb::exception<DependsOnPosition> position(m, "DependsOnPosition", error.ptr());
  const nb::exception<ClassifierChanged> changed(m, "ClassifierChanged", error.ptr());
  nb::setattr(error, "__doc__", nb::str("The caller's mistake, in one line."));
  m.def("in_python_words", in_python_words, nb::arg("message"));
  bind_statistics(m);
  bind_models(m);
  bind_votes(m);
  bind_tables(m);
  bind_compare(m);
  bind_conformal(m);
  bind_training(m);
  bind_federation(m);
  bind_reports(m);
  bind_tools(m);
  bind_program(m);
}

}  // namespace fedsmooth::python
