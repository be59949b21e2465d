// A federation: the server hands its rounds to a Python function; a node runs its part of them.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/training.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

using jobs::AskedRound, jobs::Node, jobs::NodeFacts, jobs::RoundSum;
using Words = std::vector<long long>;

// Returns the values of an array, which must have one axis.
template <typename T>
std::vector<T> to_vector(const Given<T>& values) {
  if (values.ndim() != 1) throw Error("{} axes, expected one", values.ndim());
  return {values.data(), values.data() + values.size()};
}

Words to_words(const Given<int64_t>& values) {
  static_assert(sizeof(long long) == sizeof(int64_t));
  const std::vector<int64_t> words = to_vector(values);
  return {words.begin(), words.end()};
}

template <typename Word>
Numpy<int64_t> words_to_numpy(const std::vector<Word>& words) {
  return to_numpy<int64_t>(Array::of(std::vector<int64_t>(words.begin(), words.end())));
}

Numpy<float> weights_to_numpy(const AskedRound& round) {
  std::vector<float> values;
  for (const Array& w : round.model.weights) {
    values.insert(values.end(), w.floats(), w.floats() + w.count());
  }
  const auto count = static_cast<int64_t>(values.size());
  return to_numpy(Array::of({count}, values));
}

Experiment parse(const std::string& toml) {
  Experiment experiment = parse_experiment(toml, "the federation's experiment");
  check_certification(experiment);
  return experiment;
}

std::string complete_experiment(const std::string& text, const std::string& name,
                                const Overrides& overrides) {
  Experiment experiment = parse_experiment(text, name);
  apply_overrides(experiment, overrides);
  check_certification(experiment);
  return format_experiment(experiment);
}

Node* make_node(const std::string& toml, const std::string& device, int threads) {
  const nb::gil_scoped_release released;
  return new Node(parse(toml), {device, threads});
}

Node* make_node_with_images(const std::string& toml, const Given<uint8_t>& images,
                            const std::vector<int64_t>& labels,
                            const std::vector<std::string>& class_names, int64_t client,
                            const std::string& device, int threads) {
  const jobs::OwnImages own{{to_array(images), labels, class_names}, client};
  if (own.images.images.axes() != 4 || own.images.images.size(0) != own.images.size()) {
    throw Error("data: images must be [N, C, H, W], with N labels");
  }
  const nb::gil_scoped_release released;
  return new Node(parse(toml), own, {device, threads});
}

Numpy<int64_t> run_node(Node& node, int64_t t, int64_t total, const std::vector<int64_t>& clients,
                        const Given<float>& weights) {
  const std::vector<float> values = to_vector(weights);
  Words words;
  {
    const nb::gil_scoped_release released;
    words = node.run(t, total, clients, values);
  }
  return words_to_numpy(words);
}

// Trains as train() does, but `ask`, a function from rounds to the int64 words of each, runs them.
jobs::TrainedRun federate(const std::string& toml, const nb::object& ask, const std::string& device,
                          const std::string& arithmetic, const std::vector<int64_t>& images,
                          const std::filesystem::path& out, bool resume, const nb::object& on_round,
                          const nb::object& progress, const nb::object& warn) {
  const Experiment experiment = parse(toml);
  const jobs::Federation federation{
      [&](const std::vector<AskedRound>& rounds) {
        const nb::gil_scoped_acquire acquired;
        std::vector<Words> all;
        for (const nb::handle words : ask(rounds)) {
          all.push_back(to_words(nb::cast<Given<int64_t>>(words, /*convert=*/false)));
        }
        return all;
      },
      device, arithmetic, images};
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const jobs::Context context = make_context("auto", 0, stop, progress, warn);
  jobs::TrainArguments arguments{experiment, out, resume, hear_rounds(on_round)};
  arguments.federation = &federation;
  return do_in_background(stop, [&] { return jobs::train(arguments, context); });
}

}  // namespace

void bind_federation(nb::module_& m) {
  nb::class_<AskedRound>(m, "AskedRound", "A round that a server hands out to nodes.")
      .def_ro("t", &AskedRound::t, "Number of the round, from 0.")
      .def_ro("total", &AskedRound::total, "Images of all clients.")
      .def_ro("clients", &AskedRound::clients, "Numbers of the round's clients, ascending.")
      .def_ro("model", &AskedRound::model, "The model from which the clients start.")
      .def_prop_ro("weights", weights_to_numpy, nb::rv_policy::move,  // the array owns them
                   "The model's weights, one after another, float32.");
  nb::class_<RoundSum>(m, "RoundSum", "Adds up what nodes answered to a round.")
      .def(nb::init<const AskedRound&>(), nb::arg("round"))
      .def(
          "add",
          [](RoundSum& sum, const std::vector<int64_t>& clients, const Given<int64_t>& words) {
            sum.add(clients, to_words(words));
          },
          nb::arg("clients"), nb::arg("words").noconvert(),
          "Adds the words of a node that ran these clients; an Error if no honest node sends them.")
      .def(
          "add_masked",
          [](RoundSum& sum, const std::vector<int64_t>& clients, const Given<int64_t>& words) {
            sum.add_masked(clients, to_words(words));
          },
          nb::arg("clients"), nb::arg("words").noconvert(),
          "Adds masked words, which total() can check only together with the other nodes'.")
      .def_prop_ro("clients", &RoundSum::clients, "Numbers of the clients with an answer.")
      .def("total", [](const RoundSum& sum) { return words_to_numpy(sum.total()); });
  nb::class_<NodeFacts>(m, "NodeFacts", "What nodes and server must agree on.")
      .def_ro("version", &NodeFacts::version)
      .def_ro("commit", &NodeFacts::commit)
      .def_ro("device", &NodeFacts::device)
      .def_ro("arithmetic", &NodeFacts::arithmetic)
      .def_ro("data_sha256", &NodeFacts::data_sha256, "Empty if the images are the node's own.")
      .def_ro("images", &NodeFacts::images);
  nb::class_<Node>(m, "Node", "Runs its part of a round's clients.")
      .def(nb::new_(&make_node), nb::arg("toml"), nb::arg("device"), nb::arg("threads"))
      .def(nb::new_(&make_node_with_images), nb::arg("toml"), nb::arg("images").noconvert(),
           nb::arg("labels"), nb::arg("class_names"), nb::arg("client"), nb::arg("device"),
           nb::arg("threads"))
      .def_prop_ro("facts", &Node::facts)
      .def("run", run_node, nb::arg("t"), nb::arg("total"), nb::arg("clients"),
           nb::arg("weights").noconvert());
  m.def("complete_experiment", complete_experiment, nb::arg("text"), nb::arg("name"),
        nb::arg("overrides"), "The experiment as TOML with every key.");
  m.def("keys_of_files", keys_of_files,
        "The keys of an experiment whose value is the path of a file or folder that is opened.");
  m.def("group_of", group_of, nb::arg("client"), nb::arg("count"), nb::arg("seed"),
        "The group of a client, from 1: a hash of its number, keyed by the experiment's seed.");
  m.def("federate", federate, nb::arg("toml"), nb::arg("ask"), nb::arg("device"),
        nb::arg("arithmetic"), nb::arg("images"), nb::arg("out"), nb::arg("resume"),
        nb::arg("on_round").none(), nb::arg("progress").none(), nb::arg("warn").none());
}

}  // namespace fedsmooth::python
