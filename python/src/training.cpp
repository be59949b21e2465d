// Training into a run folder.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/training.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

jobs::TrainedRun train(const std::filesystem::path& path, const Overrides& overrides,
                       const std::filesystem::path& out, bool resume, const std::string& device,
                       int threads, const nb::object& on_round, const nb::object& progress,
                       const nb::object& warn) {
  Experiment experiment = read_experiment(path);
  apply_overrides(experiment, overrides);
  check_certification(experiment);
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const jobs::Context context = make_context(device, threads, stop, progress, warn);
  const jobs::TrainArguments arguments{experiment, out, resume, hear_rounds(on_round)};
  return do_in_background(stop, [&] { return jobs::train(arguments, context); });
}

std::filesystem::path certify_run(const std::string& folder, const std::vector<std::string>& with,
                                  const Overrides& overrides, const std::string& out, bool resume,
                                  const std::string& device, int threads,
                                  const nb::object& progress, const nb::object& warn) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const jobs::Context context = make_context(device, threads, stop, progress, warn);
  return do_in_background(stop, [&] {
    return jobs::certify({folder, out, "", resume, with}, overrides, context);
  });
}

}  // namespace

std::function<void(const RoundRow&)> hear_rounds(const nb::object& on_round) {
  if (on_round.is_none()) return {};
  return [f = on_round.ptr()](const RoundRow& row) {
    const nb::gil_scoped_acquire acquired;
    const nb::handle call(f);
    call(row);
  };
}

void bind_training(nb::module_& m) {
  nb::class_<RoundRow>(m, "Round", "One round of a training, a row of rounds.tsv.")
      .def_ro("round", &RoundRow::round)
      .def_ro("loss", &RoundRow::loss)
      .def_ro("loss_robust", &RoundRow::loss_robust)
      .def_ro("loss_entropy", &RoundRow::loss_entropy)
      .def_ro("noisy_accuracy", &RoundRow::noisy_accuracy)
      .def_ro("perturbation_mean", &RoundRow::perturbation_mean)
      .def_ro("perturbation_p95", &RoundRow::perturbation_p95)
      .def_ro("probability_drop", &RoundRow::probability_drop)
      .def_ro("dropped", &RoundRow::dropped)
      .def_ro("seconds", &RoundRow::seconds);
  m.def(
      "read_rounds", [](const std::filesystem::path& path) { return read_rounds(path); },
      nb::arg("path"));
  nb::class_<jobs::TrainedRun>(m, "TrainedRun")
      .def_ro("is_new", &jobs::TrainedRun::is_new)
      .def_ro("rounds", &jobs::TrainedRun::rounds)
      .def_ro("loss", &jobs::TrainedRun::loss)
      .def_ro("model_sha256", &jobs::TrainedRun::model_sha256);
  m.def("train", train, nb::arg("path"), nb::arg("overrides"), nb::arg("out"), nb::arg("resume"),
        nb::arg("device"), nb::arg("threads"), nb::arg("on_round").none(),
        nb::arg("progress").none(), nb::arg("warn").none());
  m.def("certify_run", certify_run, nb::kw_only(), nb::arg("folder"), nb::arg("with_"),
        nb::arg("overrides"), nb::arg("out"), nb::arg("resume"), nb::arg("device"),
        nb::arg("threads"), nb::arg("progress").none(), nb::arg("warn").none());
}

}  // namespace fedsmooth::python
