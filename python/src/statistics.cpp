#include "fedsmooth/smoothing/statistics.h"

#include <nanobind/stl/string.h>

#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

void check_counts(int64_t k, int64_t n, double alpha) {
  if (n < 1 || n > int64_t{1} << 32) throw Error("n={}: must be from 1 to 2^32", n);
  if (k < 0 || k > n) throw Error("k={}: must be from 0 to n={}", k, n);
  if (!is_level(alpha)) throw Error("alpha={}: {}", alpha, kLevels);
}

template <double (*bound)(int64_t, int64_t, double)>
double checked(int64_t k, int64_t n, double alpha) {
  check_counts(k, n, alpha);
  return bound(k, n, alpha);
}

Certificate from_counts(int64_t selected, int64_t n, int64_t top, int64_t runner_up, double sigma,
                        double alpha, const std::string& radius) {
  check_counts(top, n, alpha);
  check_counts(runner_up, n - top > 0 ? n - top : n, alpha);
  if (!(sigma > 0) || !std::isfinite(sigma)) throw Error("sigma={}: must be positive", sigma);
  return certificate_from_counts({selected, n, top, runner_up}, sigma, alpha, parse_radius(radius),
                                 kFloatNoise);
}

}  // namespace

void bind_statistics(nb::module_& m) {
  m.def("lower_bound", checked<binomial_lower_bound>, nb::arg("k"), nb::arg("n"), nb::arg("alpha"));
  m.def("upper_bound", checked<binomial_upper_bound>, nb::arg("k"), nb::arg("n"), nb::arg("alpha"));
  nb::class_<Certificate>(m, "Certificate", "What the votes on one image prove.")
      .def_prop_ro("selected", [](const Certificate& c) { return c.counts.selected; })
      .def_prop_ro("n", [](const Certificate& c) { return c.counts.n; })
      .def_prop_ro("count_top", [](const Certificate& c) { return c.counts.top; })
      .def_prop_ro("count_runner_up", [](const Certificate& c) { return c.counts.runner_up; })
      .def_ro("predict", &Certificate::predict)
      .def_ro("p_lower", &Certificate::p_lower)
      .def_ro("radius", &Certificate::radius);
  m.def("certificate_from_counts", from_counts, nb::arg("selected"), nb::arg("n"), nb::arg("top"),
        nb::arg("runner_up"), nb::arg("sigma"), nb::arg("alpha"), nb::arg("radius"));
}

}  // namespace fedsmooth::python
