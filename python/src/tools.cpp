// Jobs on existing tables and runs: verifies, attacks, joins and recomputes them; certifies single
// images by a run; and runs whole sweeps.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/table_file.h"
#include "python/src/context.h"
#include "python/src/tables.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

using jobs::Verification, jobs::RedrawnImage;
using Paths = std::vector<std::string>;

Verification verify(const std::string& table, int64_t images, const std::string& model,
                    const Paths& with, int64_t n, const Overrides& overrides,
                    const std::string& device, int threads, const nb::object& progress,
                    const nb::object& warn) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const jobs::Context context = make_context(device, threads, stop, progress, warn);
  return do_in_background(stop, [&] {
    return jobs::verify({table, images, model, n, with}, overrides, context);
  });
}

Verification verify_in_hand(Votes& votes, const std::string& name, const std::string& sha256,
                            const ImagesGiven& given, const std::string& table, int64_t images,
                            int64_t n, double sigma, std::optional<uint64_t> seed,
                            const nb::object& progress, const nb::object& warn) {
  const jobs::ClassifierInHand classifier{votes.sampler(), name, sha256};
  const jobs::Context context = make_context("auto", 0, votes.stop(), progress, warn);
  return votes.with_sampler([&](Sampler&) {
    return jobs::verify_in_hand({table, images, n, sigma, seed}, classifier, given.images, context);
  });
}

jobs::ProvedAnswer certify_image(const std::string& model, const std::string& image,
                                 const Overrides& overrides, const std::string& device, int threads,
                                 const nb::object& warn) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const jobs::Context context = make_context(device, threads, stop, nb::none(), warn);
  return do_in_background(stop, [&] {
    return jobs::certify_images({.path = model, .images = {image}}, overrides, context).at(0);
  });
}

std::filesystem::path recertify(const std::string& table, std::optional<double> alpha,
                                const std::string& radius, std::optional<int64_t> malicious,
                                const std::string& out) {
  const nb::gil_scoped_release released;
  return jobs::recertify({table, out, radius, alpha, malicious});
}

jobs::AttackOutcome attack(const std::string& path, const std::vector<double>& epsilons, int64_t n,
                           const Overrides& overrides, const std::string& out, bool resume,
                           const std::string& device, int threads, const nb::object& progress,
                           const nb::object& warn) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const jobs::Context context = make_context(device, threads, stop, progress, warn);
  return do_in_background(stop, [&] {
    return jobs::attack({path, out, epsilons, n, resume}, overrides, context);
  });
}

jobs::SweepResult sweep(const std::string& path, const Overrides& overrides, const std::string& out,
                        int64_t at_once, const std::string& device, int threads,
                        const nb::object& progress, const nb::object& warn) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const jobs::Context context = make_context(device, threads, stop, progress, warn);
  return do_in_background(stop, [&] {
    return jobs::sweep({path, out, 1, at_once}, overrides, context);
  });
}

std::string read_identity(const std::filesystem::path& path) {
  const std::filesystem::path table = jobs::find_table(path);
  refuse_published(table);
  return read_sidecar(table).value("identity", nlohmann::json::object()).dump();
}

std::string noise_of_table(const std::filesystem::path& table) {
  const CertificateIdentity identity = fedsmooth::read_identity(jobs::find_table(table));
  return std::string(option_of_law(drawn_today(identity.law())));
}

void bind_verification(nb::module_& m) {
  nb::class_<RedrawnImage>(m, "RedrawnImage", "An image whose votes were drawn anew.")
      .def_ro("index", &RedrawnImage::index)
      .def_ro("selected", &RedrawnImage::selected, "The class whose votes are counted.")
      .def_ro("stored_top", &RedrawnImage::stored_top, "Votes for it in the table.")
      .def_ro("stored_n", &RedrawnImage::stored_n)
      .def_ro("top", &RedrawnImage::top, "New votes for it.")
      .def_ro("n", &RedrawnImage::n)
      .def_ro("p_value", &RedrawnImage::p_value,
              "Small if the stored count is too high for these new votes.");
  nb::class_<Verification>(m, "Verification", "Whether a table holds.")
      .def_ro("table", &Verification::table)
      .def_ro("rows", &Verification::rows, "Number of rows, all of which follow from their counts.")
      .def_ro("images", &Verification::images)
      .def_ro("seed", &Verification::seed, "Seed of the choice of images and of their votes.")
      .def_ro("p_value", &Verification::p_value, "The table's p-value, from those of the images.")
      .def_prop_ro("plausible", &Verification::plausible,
                   "False for an honest table with probability at most 0.001.")
      .def("__repr__", [](const Verification& found) {
        return fmt::format(
            "Verification({} rows follow from their counts, {} drawn anew, p {:.3g}: {})",
            found.rows, found.images.size(), found.p_value,
            found.plausible() ? "plausible" : "IMPLAUSIBLE");
      });
  m.def("verify", verify, nb::kw_only(), nb::arg("table"), nb::arg("images"), nb::arg("model"),
        nb::arg("with_"), nb::arg("n"), nb::arg("overrides"), nb::arg("device"), nb::arg("threads"),
        nb::arg("progress").none(), nb::arg("warn").none());
  m.def("verify_in_hand", verify_in_hand, nb::kw_only(), nb::arg("votes"), nb::arg("name"),
        nb::arg("sha256"), nb::arg("given"), nb::arg("table"), nb::arg("images"), nb::arg("n"),
        nb::arg("sigma"), nb::arg("seed").none(), nb::arg("progress").none(),
        nb::arg("warn").none());
}

void bind_image_certificate(nb::module_& m) {
  using jobs::ProvedAnswer;
  nb::class_<ProvedAnswer>(m, "ImageCertificate", "What the votes on one image file prove.")
      .def_ro("image", &ProvedAnswer::image, "The image as it was given.")
      .def_prop_ro(
          "label", [](const ProvedAnswer& a) { return a.certificate.predict; },
          "The class, or ABSTAIN.")
      .def_ro("class_name", &ProvedAnswer::class_name, "Its name; abstain if nothing is proved.")
      .def_prop_ro(
          "radius", [](const ProvedAnswer& a) { return a.certificate.radius; },
          "In units of [0, 1] pixels, rounded down.")
      .def_ro("norm", &ProvedAnswer::norm, "Norm of the radius: l2, l1 or linf.")
      .def_prop_ro(
          "selected", [](const ProvedAnswer& a) { return a.certificate.counts.selected; },
          "The class that the n0 votes chose.")
      .def_prop_ro(
          "count_top", [](const ProvedAnswer& a) { return a.certificate.counts.top; },
          "Fresh votes for it.")
      .def_prop_ro(
          "count_runner_up", [](const ProvedAnswer& a) { return a.certificate.counts.runner_up; },
          "The most for any other class.")
      .def_prop_ro(
          "n", [](const ProvedAnswer& a) { return a.certificate.counts.n; }, "All fresh votes.")
      .def_prop_ro(
          "p_lower", [](const ProvedAnswer& a) { return a.certificate.p_lower; },
          "Bound on the probability of `selected` under the noise.")
      .def_ro("alpha", &ProvedAnswer::alpha, "Bound on the probability that this is wrong.")
      .def_ro("seed", &ProvedAnswer::seed, "Seed of the noise, which repeats the votes.")
      .def("__str__", [](const ProvedAnswer& a) { return jobs::describe(a); })
      .def("__repr__", [](const ProvedAnswer& a) {
        return fmt::format("ImageCertificate({}: {}; {} of {} votes)", a.image, jobs::describe(a),
                           a.certificate.counts.top, a.certificate.counts.n);
      });
  m.def("certify_image", certify_image, nb::kw_only(), nb::arg("model"), nb::arg("image"),
        nb::arg("overrides"), nb::arg("device"), nb::arg("threads"), nb::arg("warn").none());
}

void bind_attack(nb::module_& m) {
  using Point = AttackSummary::Point;
  nb::class_<Point>(m, "AttackedAtEpsilon", "Accuracy under an attack of one l2 radius.")
      .def_ro("epsilon", &Point::epsilon)
      .def_prop_ro("accuracy", [](const Point& point) { return point.accuracy.value; })
      .def_prop_ro("low", [](const Point& point) { return point.accuracy.low; })
      .def_prop_ro("high", [](const Point& point) { return point.accuracy.high; })
      .def_ro(
          "certified_accuracy", &Point::certified,
          "Certified accuracy of the attacked images that have certificates; None if not known.");
  nb::class_<jobs::AttackOutcome>(m, "Attack", "A smoothed classifier under SmoothAdv's attack.")
      .def_ro("table", &jobs::AttackOutcome::table)
      .def_prop_ro("images", [](const jobs::AttackOutcome& a) { return a.summary.images; })
      .def_prop_ro("points", [](const jobs::AttackOutcome& a) { return a.summary.points; })
      .def_prop_ro("warnings", [](const jobs::AttackOutcome& a) { return a.summary.warnings; })
      .def("__repr__", [](const jobs::AttackOutcome& a) { return render_attacks(a.summary); });
  m.def("attack", attack, nb::kw_only(), nb::arg("path"), nb::arg("epsilons"), nb::arg("n"),
        nb::arg("overrides"), nb::arg("out"), nb::arg("resume"), nb::arg("device"),
        nb::arg("threads"), nb::arg("progress").none(), nb::arg("warn").none());
}

}  // namespace

void bind_tools(nb::module_& m) {
  bind_verification(m);
  bind_image_certificate(m);
  bind_attack(m);
  m.def("read_identity", read_identity, nb::arg("table"), "What a table is about, as JSON.");
  m.def("noise_of_table", noise_of_table, nb::arg("table"),
        "The noise with which to continue or verify a table, as the argument `noise` names it.");
  m.def("merge", jobs::merge, nb::arg("tables"), nb::arg("out"),
        nb::call_guard<nb::gil_scoped_release>());
  m.def("recertify", recertify, nb::kw_only(), nb::arg("table"), nb::arg("alpha").none(),
        nb::arg("radius"), nb::arg("malicious").none(), nb::arg("out"));
  nb::class_<jobs::SweepResult>(m, "SweepResult")
      .def_ro("page", &jobs::SweepResult::page)
      .def_ro("done", &jobs::SweepResult::done)
      .def_ro("failed", &jobs::SweepResult::failed)
      .def_ro("total", &jobs::SweepResult::total);
  m.def("sweep", sweep, nb::kw_only(), nb::arg("path"), nb::arg("overrides"), nb::arg("out"),
        nb::arg("at_once"), nb::arg("device"), nb::arg("threads"), nb::arg("progress").none(),
        nb::arg("warn").none());
}

}  // namespace fedsmooth::python
