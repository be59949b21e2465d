// Compares two tables on the images that both have.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "fedsmooth/report/page/compare_page.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

ComparedRuns compare(const std::string& a, const std::string& b, const std::string& out,
                     const std::string& norm, int64_t values) {
  const nb::gil_scoped_release released;
  return jobs::compare({a, b, out, {.norm = norm, .values = values}});
}

}  // namespace

void bind_compare(nb::module_& m) {
  nb::class_<Difference>(m, "Difference", "A - B with a 95% interval over the choice of images.")
      .def_ro("value", &Difference::value)
      .def_ro("low", &Difference::low)
      .def_ro("high", &Difference::high)
      .def_ro("exact", &Difference::exact, "Whether the interval is that of Clopper and Pearson.");
  nb::class_<PairedAtRadius>(m, "ComparedAtRadius", "Certified accuracy of both at one radius.")
      .def_ro("radius", &PairedAtRadius::radius)
      .def_ro("a", &PairedAtRadius::a)
      .def_ro("b", &PairedAtRadius::b)
      .def_ro("difference", &PairedAtRadius::difference)
      .def_ro("both", &PairedAtRadius::both, "Images that are correct and certified by both.")
      .def_ro("only_a", &PairedAtRadius::only_a)
      .def_ro("only_b", &PairedAtRadius::only_b);
  nb::class_<ComparedRuns>(m, "Comparison", "Two tables on the images that both have.")
      .def_prop_ro("images", [](const ComparedRuns& c) { return c.paired.images; })
      .def_ro("images_a", &ComparedRuns::images_a, "Images of A, those included that B lacks.")
      .def_ro("images_b", &ComparedRuns::images_b)
      .def_prop_ro("warning", warn_of_other_data, "Not empty if the tables state different data.")
      .def_prop_ro("name_a", [](const ComparedRuns& c) { return c.a.name; })
      .def_prop_ro("name_b", [](const ComparedRuns& c) { return c.b.name; })
      .def_prop_ro("radii", [](const ComparedRuns& c) { return c.paired.table; })
      .def_prop_ro(
          "curve", [](const ComparedRuns& c) { return c.paired.curve; },
          "Both at radii of equal distances up to the largest, for a figure.")
      .def_prop_ro("acr_a", [](const ComparedRuns& c) { return c.paired.acr_a; })
      .def_prop_ro("acr_b", [](const ComparedRuns& c) { return c.paired.acr_b; })
      .def_prop_ro(
          "acr_difference", [](const ComparedRuns& c) { return c.paired.acr; },
          "Difference of the average certified radii; None if too few images differ for an "
          "interval.")
      .def("__repr__", [](const ComparedRuns& c) { return render_compare_table(c); })
      .def("_repr_html_", [](nb::handle_t<ComparedRuns> c) {
        return nb::cast<nb::str>(
            nb::module_::import_("fedsmooth._show").attr("comparison_html")(c));
      });
  m.def("compare", compare, nb::arg("a"), nb::arg("b"), nb::arg("out"), nb::arg("norm"),
        nb::arg("values"));
}

}  // namespace fedsmooth::python
