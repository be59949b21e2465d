// Tables of certificates.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/smoothing/group_votes.h"
#include "python/src/context.h"
#include "python/src/tables.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

template <typename T>
Numpy<T> to_numpy_of(std::vector<T> given, std::initializer_list<size_t> shape) {
  auto values = std::make_unique<std::vector<T>>(std::move(given));
  T* data = values->data();
  const nb::capsule keeper(values.get(),
                           [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  values.release();
  return Numpy<T>(data, shape, keeper);
}

template <typename T>
Numpy<T> to_column(std::vector<T> given) {
  const size_t count = given.size();
  return to_numpy_of(std::move(given), {count});
}

template <typename T, typename Get>
Numpy<T> column(const std::vector<CertificateRow>& rows, Get get) {
  std::vector<T> values;
  for (const CertificateRow& row : rows) values.push_back(static_cast<T>(get(row)));
  return to_column(std::move(values));
}

void refuse_stopped(const char* what, const CertificateRow& row) {
  if (row.rule != VoteRule::kRadii) return;
  throw Error("{}: votes were stopped early (--radii), so their gaps are not kept", what);
}

// The rows of a run of several groups, from which radii for other numbers of malicious clients
// follow.
struct GroupRows {
  std::vector<CertificateRow> rows;
  int64_t groups = 0;

  // Returns answers and radii against this number, at the alpha of the rows.
  nb::tuple against(int64_t malicious) const {
    CertifyOptions options;
    options.malicious = malicious;
    check_malicious(options, groups);
    const std::vector<CertificateRow> others = fedsmooth::against(rows, malicious);
    using Row = const CertificateRow&;
    return nb::make_tuple(column<int64_t>(others, [](Row r) { return r.certificate.predict; }),
                          column<double>(others, [](Row r) { return r.certificate.radius; }));
  }

  // Returns the largest number of malicious clients for which the radius is certified, at the alpha
  // of each row; -1 where it is not certified for any.
  Numpy<int64_t> most_malicious(double radius) const {
    if (!(radius >= 0)) throw Error("most_malicious: radius={}: must be at least 0", radius);
    return column<int64_t>(rows, [radius](const CertificateRow& row) -> int64_t {
      refuse_stopped("most_malicious", row);
      const Gaps& gaps = row.certificate.counts.gaps;
      if (gaps.empty()) return -1;
      return fedsmooth::most_malicious(gaps, radius, row.sigma, row.alpha, row.law()).value_or(-1);
    });
  }

  // Returns the number of copies of each row by gap, [rows, groups + 2]: gaps 0 ... groups, then
  // all gaps below 0. A row without votes has zeros.
  Numpy<int64_t> gaps() const {
    const int64_t width = groups + 2;
    std::vector<int64_t> found(rows.size() * width);
    for (size_t i = 0; i < rows.size(); ++i) {
      refuse_stopped("gaps", rows[i]);
      std::ranges::copy(rows[i].certificate.counts.gaps, found.begin() + i * width);
    }
    return to_numpy_of(std::move(found), {rows.size(), static_cast<size_t>(width)});
  }
};

// Returns the votes of all classes as (row, class, votes, K), without classes that got no votes in
// a row.
template <typename Get>
nb::tuple tallies(const std::vector<CertificateRow>& rows, int64_t classes, Get get) {
  std::vector<int64_t> row, label, votes;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const ClassVotes& of : get(rows[i].certificate.counts)) {
      row.push_back(static_cast<int64_t>(i));
      label.push_back(of.label);
      votes.push_back(of.votes);
      classes = std::max(classes, of.label + 1);  // tables of earlier versions state no K
    }
  }
  return nb::make_tuple(to_column(std::move(row)), to_column(std::move(label)),
                        to_column(std::move(votes)), classes);
}

nb::typed<nb::dict, nb::str, nb::any> columns(const std::vector<CertificateRow>& rows,
                                              int64_t classes, int64_t groups) {
  using Row = const CertificateRow&;
  nb::dict all;
  all["idx"] = column<int64_t>(rows, [](Row r) { return r.index; });
  all["label"] = column<int64_t>(rows, [](Row r) { return r.label; });
  all["predict"] = column<int64_t>(rows, [](Row r) { return r.certificate.predict; });
  all["radius"] = column<double>(rows, [](Row r) { return r.certificate.radius; });
  all["time"] = column<double>(rows, [](Row r) { return r.seconds; });
  if (!rows.empty() && rows.front().published) return all;  // the table states nothing else
  all["selected"] = column<int64_t>(rows, [](Row r) { return r.certificate.counts.selected; });
  all["n0"] = column<int64_t>(rows, [](Row r) { return r.n0; });
  all["n"] = column<int64_t>(rows, [](Row r) { return r.certificate.counts.n; });
  all["count_top"] = column<int64_t>(rows, [](Row r) { return r.certificate.counts.top; });
  all["count_runner_up"] =
      column<int64_t>(rows, [](Row r) { return r.certificate.counts.runner_up; });
  all["p_lower"] = column<double>(rows, [](Row r) { return r.certificate.p_lower; });
  all["alpha"] = column<double>(rows, [](Row r) { return r.alpha; });
  all["sigma"] = column<double>(rows, [](Row r) { return r.sigma; });
  all["seed"] = column<uint64_t>(rows, [](Row r) { return r.seed; });
  nb::list bases;
  for (const CertificateRow& row : rows) bases.append(nb::str(row.base.c_str()));
  all["base"] = bases;
  all["votes"] = tallies(rows, classes, [](const Counts& c) -> const Tally& { return c.votes; });
  all["selection_votes"] =
      tallies(rows, classes, [](const Counts& c) -> const Tally& { return c.selection; });
  if (groups == 0) return all;
  all["malicious"] = column<int64_t>(rows, [](Row r) { return r.malicious.value_or(0); });
  all["groups"] = GroupRows{rows, groups};
  return all;
}

std::tuple<Numpy<uint8_t>, std::vector<int64_t>, std::vector<std::string>> load_data(
    const std::string& name, const std::string& root, const std::string& split) {
  if (split != "train" && split != "test") throw Error("split={:?}: must be train or test", split);
  DataOptions options;
  options.name = name;
  options.root = root;
  Dataset data;
  {
    const nb::gil_scoped_release released;
    data = load_dataset(options, split == "train" ? Split::kTrain : Split::kTest);
  }
  return {to_numpy<uint8_t>(data.images), data.labels, data.class_names};
}

Dataset make_dataset(const nb::object& images, const std::vector<int64_t>& labels,
                     const std::vector<std::string>& class_names) {
  Dataset data{{}, labels, class_names};
  Given<uint8_t> bytes;  // never converted from floats
  data.images = nb::try_cast(images, bytes, /*convert=*/false)
                    ? to_array(bytes)
                    : to_array(nb::cast<Given<float>>(images, /*convert=*/false));
  if (data.images.axes() != 4) {
    throw Error("images: {} axes, expected [N, C, H, W]", data.images.axes());
  }
  if (data.images.size(0) != data.size()) {
    throw Error("data: {} images with {} labels", data.images.size(0), labels.size());
  }
  return data;
}

void make_images(ImagesGiven* made, const nb::object& images, const std::vector<int64_t>& labels,
                 const std::vector<std::string>& class_names, const std::vector<int64_t>& indices,
                 const std::string& name, const std::string& sha256) {
  new (made) ImagesGiven{{make_dataset(images, labels, class_names), indices, name, sha256}};
}

void write_table(Votes& votes, const std::string& name, const std::string& sha256,
                 const ImagesGiven& given, double sigma, const CertifyOptions& budget,
                 bool only_correct, std::optional<uint64_t> seed, int64_t every, int64_t limit,
                 const std::filesystem::path& out, bool resume, const nb::object& progress) {
  CertificationOptions options;
  static_cast<CertifyOptions&>(options) = budget;
  options.only_correct = only_correct;
  options.sigma = sigma;
  options.seed = seed;
  options.every = every;
  options.limit = limit;
  const jobs::ClassifierInHand classifier{votes.sampler(), name, sha256};
  const jobs::Context context = make_context("auto", 0, votes.stop(), progress, nb::none());
  votes.with_sampler([&](Sampler&) {
    jobs::certify_in_hand(classifier, given.images, options, out, resume, context);
  });
}

}  // namespace

void bind_tables(nb::module_& m) {
  m.def(
      "radii_against",
      [](const std::string& table, const std::vector<std::string>& against,
         const std::vector<int64_t>& numbers, const std::string& superclasses, int64_t top,
         double alpha) {
        const AgainstResult result =
            jobs::certify_against({table, {against, superclasses, top, numbers}, alpha, ""});
        std::vector<double> radii;
        for (const AvoidingRow& row : result.found.rows) radii.push_back(row.radius);
        return to_column(std::move(radii));
      },
      nb::arg("table"), nb::arg("against"), nb::arg("numbers"), nb::arg("superclasses"),
      nb::arg("top"), nb::arg("alpha"));
  nb::class_<GroupRows>(m, "GroupRows", "Rows of a run of several groups.")
      .def("against", &GroupRows::against, nb::arg("malicious"))
      .def("most_malicious", &GroupRows::most_malicious, nb::arg("radius"))
      .def("gaps", &GroupRows::gaps);
  m.def("data_sources", [] { return data_sources().names(); });
  m.def("load_data", load_data, nb::arg("name"), nb::arg("root"), nb::arg("split"));
  m.def(
      "read_certificates",
      [](const std::filesystem::path& path) {
        const std::filesystem::path table = jobs::find_table(path);
        const auto rows = read_any_certificates(table);
        const bool stated =
            table.extension() == ".tsv" && std::filesystem::exists(sidecar_path(table));
        const CertificateIdentity identity = stated ? read_identity(table) : CertificateIdentity();
        return columns(rows, identity.classes.value_or(0), identity.groups.value_or(0));
      },
      nb::arg("path"));
  m.def(
      "digest",
      [](const nb::object& images, const std::vector<int64_t>& labels) {
        return digest(make_dataset(images, labels, {}));
      },
      nb::arg("images"), nb::arg("labels"));
  m.def("derive_seed", derive_seed, nb::arg("run_seed"), nb::arg("model_sha256"),
        nb::arg("data_sha256"));
  nb::class_<ImagesGiven>(m, "Images", "Images that were picked from a data set.")
      .def("__init__", make_images, nb::arg("images"), nb::arg("labels"), nb::arg("class_names"),
           nb::arg("indices"), nb::arg("name"), nb::arg("sha256"));
  m.def("write_table", write_table, nb::kw_only(), nb::arg("votes"), nb::arg("name"),
        nb::arg("sha256"), nb::arg("given"), nb::arg("sigma"), nb::arg("budget"),
        nb::arg("only_correct"), nb::arg("seed").none(), nb::arg("every"), nb::arg("limit"),
        nb::arg("out"), nb::arg("resume"), nb::arg("progress").none());
}

}  // namespace fedsmooth::python
