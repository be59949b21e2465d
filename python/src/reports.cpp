// Pages and figures about runs.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/context.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

std::vector<std::string> report(const std::vector<std::string>& runs,
                                const std::filesystem::path& out, const jobs::TableOptions& tables,
                                const nb::object& warn) {
  const jobs::Context context = make_context("auto", 0, nullptr, nb::none(), warn);
  const nb::gil_scoped_release released;
  std::vector<std::string> names;
  for (const RunRecord& run : jobs::report(runs, out, context, tables)) names.push_back(run.name);
  return names;
}

int64_t plot(const std::vector<std::string>& runs, const std::filesystem::path& out,
             const std::string& what, const jobs::TableOptions& tables) {
  const nb::gil_scoped_release released;
  return jobs::plot({runs, out, what, tables});
}

}  // namespace

void bind_reports(nb::module_& m) {
  nb::class_<jobs::TableOptions>(m, "TableOptions")
      .def(
          "__init__",
          [](jobs::TableOptions* made, const std::string& norm, int64_t values, double sigma,
             double alpha, int64_t n, const std::string& data) {
            new (made) jobs::TableOptions{norm, values, sigma, alpha, n, data};
          },
          nb::arg("norm"), nb::arg("values"), nb::arg("sigma"), nb::arg("alpha"), nb::arg("n"),
          nb::arg("data"));
  m.def("report", report, nb::arg("runs"), nb::arg("out"), nb::arg("tables"), nb::arg("warn"),
        "Writes the page; returns the names of the runs on it.");
  m.def("plot", plot, nb::arg("runs"), nb::arg("out"), nb::arg("what"), nb::arg("tables"));
  m.def("holds_runs", jobs::holds_runs, nb::arg("folder"));
}

}  // namespace fedsmooth::python
