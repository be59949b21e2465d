// Models of our own engine: reads, evaluates and takes them apart.
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/file.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/model/network_json.h"
#include "fedsmooth/model/safetensors.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

// Computes the logits of any number of images, by the evaluator whose votes are counted, on several
// cores.
class Evaluator {
 public:
  Evaluator(const Model& model, const std::string& device, int threads)
      : input_(model.network.input) {
    const jobs::Context context{device, threads};
    jobs::check_context(context);
    const BaseClassifier f = choose_classifier(device, model, kFloatNoise);
    // A classifier with a sampler of its own is on a device that evaluates one batch at a time.
    const int workers = f.sampler ? 1 : jobs::thread_count(context);
    for (int i = 0; i < workers; ++i) classifiers_.push_back(f.make());
    workers_ = std::make_unique<Workers>(workers);
    batch_ = f.batch;
    classes_ = f.classes;
  }

  Numpy<float> logits(const Given<float>& given) {
    const Array images = to_array(given);
    const Sizes sizes = images.sizes();
    if (images.axes() != 4 || !std::equal(input_.begin(), input_.end(), sizes.begin() + 1)) {
      throw Error("images: [{}], the network takes [N, {}]", fmt::join(sizes, ", "),
                  fmt::join(input_, ", "));
    }
    return to_numpy(do_in_background(stop_, [&] { return evaluate(images); }));
  }

 private:
  Array evaluate(const Array& images) {
    const int64_t count = images.size(0);
    Array logits({count, classes_});
    std::atomic<int64_t> next = 0;
    workers_->run([&](int worker) {
      Array padded({batch_, input_[0], input_[1], input_[2]});
      for (int64_t first; (first = next.fetch_add(batch_)) < count;) {
        if (*stop_) throw Interrupted{};
        const int64_t used = std::min(batch_, count - first);
        const Array some = images.part(first, used);
        std::memcpy(padded.data(), some.data(), some.byte_count());
        const Array found = classifiers_[worker](padded).part(0, used);
        std::memcpy(logits.part(first, used).data(), found.data(), found.byte_count());
      }
    });
    return logits;
  }

  Shape input_;
  std::vector<Classifier> classifiers_;
  int64_t batch_ = 0, classes_ = 0;
  StopFlag stop_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Workers> workers_;
};

nb::typed<nb::dict, nb::str, Numpy<float>> tensors(const Model& model) {
  nb::dict named;
  const std::vector<Parameter> wanted = parameters(model.network);
  for (size_t i = 0; i < wanted.size(); ++i) {
    named[wanted[i].name.c_str()] = to_numpy(model.weights[i].clone());
  }
  return named;
}

// Refuses files that do not describe their network: the library would need a data set to find one
// whose tensors fit, and fs.load() has none.
Model model_from_bytes(const nb::bytes& bytes, const std::string& name) {
  const std::string_view content(bytes.c_str(), bytes.size());
  try {
    return parse_model(content, name, {}, nullptr);
  } catch (const Error&) {
    if (parse_safetensors(content, name).metadata.contains("fedsmooth.network")) throw;
    throw Error(
        "{}: does not describe its network; load its tensors into a torch module, for "
        "fs.from_torch or fs.Smooth",
        name);
  }
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<Model>(m, "Model", "A network and its weights.")
      .def_prop_ro("sigma", [](const Model& model) { return model.sigma; })
      .def_prop_ro("class_names", [](const Model& model) { return model.class_names; })
      .def_prop_ro("classes", [](const Model& model) { return output_shape(model.network)[0]; })
      .def_prop_ro("input", [](const Model& model) { return model.network.input; })
      .def_prop_ro("network", [](const Model& model) { return to_json(model.network).dump(); })
      .def("tensors", tensors)
      .def("to_bytes", [](const Model& model) {
        const std::string bytes = format_model(model);
        return nb::bytes(bytes.data(), bytes.size());
      });
  m.def("model_from_bytes", model_from_bytes, nb::arg("bytes"), nb::arg("name"));
  m.def("read_file", [](const std::filesystem::path& path) {
    const std::string bytes = read_file(path);
    return nb::bytes(bytes.data(), bytes.size());
  });
  m.def("write_file", [](const std::filesystem::path& path, const nb::bytes& bytes) {
    write_file(path, {bytes.c_str(), bytes.size()});
  });
  m.def("sha256", [](const nb::bytes& bytes) { return sha256({bytes.c_str(), bytes.size()}); });
  nb::class_<Evaluator>(m, "Evaluator", "Logits of a model.")
      .def(nb::init<const Model&, const std::string&, int>(), nb::arg("model"), nb::arg("device"),
           nb::arg("threads"))
      .def("logits", &Evaluator::logits, nb::arg("images").noconvert());
}

}  // namespace fedsmooth::python
