#include "python/src/votes.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/engine/device_function.h"
#include "fedsmooth/records/certificates.h"

namespace fedsmooth::python {
namespace {

using Function = nb::typed<nb::callable, nb::any(nb::any)>;
using Result = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Calls Python's function once, from a thread without the GIL.
Array call(const nb::callable& f, const Array& images) {
  const nb::gil_scoped_acquire acquired;
  // Signals are checked here because a compiled function, which runs no bytecode, does not do it.
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  const nb::object logits = f(to_numpy(images));
  return to_array(Given<float>(nb::cast<Result>(logits, /*convert=*/false)));
}

// Returns a function that is released with the GIL held, in whichever thread its last copy ends.
std::shared_ptr<nb::callable> keep(nb::callable f) {
  return {new nb::callable(std::move(f)), [](nb::callable* p) {
            const nb::gil_scoped_acquire acquired;
            delete p;
          }};
}

// Returns the number of cores that draw noise. The function's library waits meanwhile.
int noise_threads() { return std::min(available_cores(), 16); }

// Calls the function with a copy, because it may change its argument and checks and probes need
// their inputs again.
class CallableSampler : public SerialSampler {
 public:
  CallableSampler(const BaseClassifier& f, const NoiseLaw& law)
      : SerialSampler(f, law, noise_threads()) {}

 protected:
  Array evaluate(const Array& images) override { return SerialSampler::evaluate(images.clone()); }
};

// Calls torch with a batch of images in the GPU's memory and keeps its answer until the next call.
class DeviceCall {
 public:
  DeviceCall(std::shared_ptr<nb::callable> f, int64_t classes, int gpu)
      : f_(std::move(f)), classes_(classes), gpu_(gpu) {}
  ~DeviceCall() {
    const nb::gil_scoped_acquire acquired;
    logits_.reset();
  }

  const float* call(float* images, const Sizes& sizes) {
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const std::vector<size_t> shape(sizes.begin(), sizes.end());
    using Images = nb::ndarray<nb::pytorch, float, nb::device::cuda>;
    const Images given(images, shape.size(), shape.data(), nb::handle(), nullptr,
                       nb::dtype<float>(), nb::device::cuda::value, gpu_);
    logits_ = (*f_)(nb::cast(given, nb::rv_policy::reference));
    using Logits = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cuda>;
    const auto found = nb::cast<Logits>(logits_, /*convert=*/false);
    if (found.shape(0) != shape[0] || found.shape(1) != static_cast<size_t>(classes_)) {
      throw Error("model: gives [{}, {}], expected [{}, {}]", found.shape(0), found.shape(1),
                  shape[0], classes_);
    }
    return found.data();
  }

 private:
  std::shared_ptr<nb::callable> f_;
  nb::object logits_;
  int64_t classes_;
  int gpu_;
};

std::vector<Certificate> certify_images(Votes& votes, const Given<float>& images,
                                        const std::vector<uint32_t>& indices, double sigma,
                                        const CertifyOptions& options, uint64_t seed) {
  check_certify_options(options, sigma, votes.sampler()->law());
  const Array all = to_array(images);
  if (all.axes() != 4) throw Error("images: {} axes, expected [N, C, H, W]", all.axes());
  votes.check_shape({all.size(1), all.size(2), all.size(3)});
  if (all.size(0) != std::ssize(indices)) {
    throw Error("images: {} with {} indices", all.size(0), indices.size());
  }
  return votes.with_sampler([&](Sampler& sampler) {
    std::vector<Certificate> found;
    const int64_t wave = images_per_wave(sampler, options);
    for (int64_t first = 0; first < all.size(0); first += wave) {
      std::vector<LabelledImage> some;
      for (int64_t i = first; i < std::min(first + wave, all.size(0)); ++i) {
        some.push_back({all[i], indices[i]});
      }
      const auto more = certify_all(sampler, some, sigma, options, seed);
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  });
}

std::tuple<int64_t, std::vector<int64_t>> predict_image(Votes& votes, const Given<float>& image,
                                                        double sigma, int64_t n, double alpha,
                                                        uint64_t seed, uint32_t index) {
  check_predict_options(n, alpha, sigma, votes.sampler()->law());
  const Array x = to_array(image);
  if (x.axes() != 3) throw Error("image: {} axes, expected [C, H, W]", x.axes());
  votes.check_shape(x.sizes());
  const Prediction found = votes.with_sampler(
      [&](Sampler& sampler) { return predict(sampler, x, sigma, n, alpha, seed, index); });
  return {found.predict, found.votes};
}

void check_batch(int64_t classes, int64_t batch) {
  if (classes < 1 || classes > 1 << 24) throw Error("num_classes={}: must be from 1", classes);
  if (batch < 1 || batch > 1 << 20) throw Error("batch_size={}: must be from 1 to 2^20", batch);
}

BaseClassifier on_host(const std::shared_ptr<nb::callable>& f, int64_t classes, int64_t batch,
                       const std::string& description) {
  BaseClassifier base{
      [f]() -> Classifier { return [f](const Array& images) { return call(*f, images); }; },
      classes, batch, description};
  base.sampler = [base](const NoiseLaw& law, const Stop&) {
    return std::make_unique<CallableSampler>(base, law);
  };
  return base;
}

void make_budget(CertifyOptions* made, int64_t n0, int64_t n, double alpha,
                 const std::string& radius, const std::vector<double>& radii, double beta,
                 double plan) {
  new (made) CertifyOptions{n0, n, alpha, parse_radius(radius), false, radii, beta, plan};
}

// Shows Python's collector the function, which often refers to the Smooth that holds these votes.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* votes = nb::inst_ptr<Votes>(self);
  if (votes->function()) Py_VISIT(votes->function()->ptr());
  if (votes->function_on_gpu()) Py_VISIT(votes->function_on_gpu()->ptr());
  return 0;
}

int clear(PyObject* self) {
  nb::inst_ptr<Votes>(self)->clear();
  return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

Votes::Votes(nb::callable f, int64_t classes, int64_t batch, const std::string& description,
             const std::string& noise)
    : function_(keep(std::move(f))) {
  check_batch(classes, batch);
  sampler_ = make_sampler(on_host(function_, classes, batch, description), law_of_option(noise), 1);
}

Votes::Votes(nb::callable f, int64_t classes, int64_t batch, const std::string& description,
             const std::string& noise, nb::callable on_gpu, const Shape& input, int gpu,
             uintptr_t stream)
    : Votes(std::move(f), classes, batch, description, noise) {
  const auto function = keep(std::move(on_gpu));
  const auto call = std::make_shared<DeviceCall>(function, classes, gpu);
  const DeviceFunction device{
      [call](float* images, const Sizes& sizes) { return call->call(images, sizes); }, gpu,
      reinterpret_cast<void*>(stream)};  // NOLINT: a handle that Python holds as a number
  const auto there = device_function_classifier(device, input, static_cast<int>(classes),
                                                static_cast<int>(batch), description);
  if (!there) return;
  sampler_ = make_sampler(*there, law_of_option(noise), 1);
  on_gpu_ = function;
}

Votes::Votes(const Model& model, const std::string& device, int threads, const std::string& noise)
    : stop_(std::make_shared<std::atomic<bool>>(false)), input_(model.network.input) {
  const jobs::Context context{device, threads};
  jobs::check_context(context);
  const NoiseLaw& law = law_of_option(noise);
  sampler_ = make_sampler(choose_classifier(device, model, law), law, jobs::thread_count(context),
                          [stop = stop_] { return stop->load(); });
}

void Votes::check_shape(const Sizes& image) const {
  if (!input_ || std::ranges::equal(*input_, image)) return;
  throw Error("image: [{}], the network takes [{}]", fmt::join(image, ", "),
              fmt::join(*input_, ", "));
}

void Votes::clear() {
  sampler_.reset();
  function_.reset();
  on_gpu_.reset();
}

RadiusKind parse_radius(const std::string& name) {
  for (const RadiusKind kind : {RadiusKind::kOneSided, RadiusKind::kMulticlass}) {
    if (name == radius_name(kind)) return kind;
  }
  throw Error("radius={:?}: must be one-sided or multiclass", name);
}

void bind_votes(nb::module_& m) {
  nb::class_<CertifyOptions>(m, "Budget", "How many votes are drawn, and what they prove.")
      .def("__init__", make_budget, nb::kw_only(), nb::arg("n0"), nb::arg("n"), nb::arg("alpha"),
           nb::arg("radius"), nb::arg("radii"), nb::arg("beta"), nb::arg("plan"))
      .def_ro("n0", &CertifyOptions::n0)
      .def_ro("alpha", &CertifyOptions::alpha);
  nb::class_<Votes>(m, "Votes", nb::type_slots(slots), "Votes of one base classifier under noise.")
      .def(nb::init<Function, int64_t, int64_t, const std::string&, const std::string&>(),
           nb::arg("f"), nb::arg("classes"), nb::arg("batch"), nb::arg("description"),
           nb::arg("noise"))
      .def(nb::init<Function, int64_t, int64_t, const std::string&, const std::string&, Function,
                    const Shape&, int, uintptr_t>(),
           nb::arg("f"), nb::arg("classes"), nb::arg("batch"), nb::arg("description"),
           nb::arg("noise"), nb::arg("on_gpu"), nb::arg("input"), nb::arg("gpu"), nb::arg("stream"))
      .def(nb::init<const Model&, const std::string&, int, const std::string&>(), nb::arg("model"),
           nb::arg("device"), nb::arg("threads"), nb::arg("noise"))
      .def_prop_ro("counts_on_gpu", &Votes::counts_on_gpu,
                   "Whether noise is drawn and votes are counted on the GPU.")
      .def_prop_ro("batch", [](const Votes& v) { return v.sampler()->batch(); })
      .def_prop_ro("description", [](const Votes& v) { return v.sampler()->description(); })
      .def(
          "check",
          [](Votes& v, const std::vector<int64_t>& shape) {
            if (shape.size() != 3) throw Error("image: {} axes, expected [C, H, W]", shape.size());
            return v.with_sampler([&](Sampler& sampler) { return sampler.check(shape); });
          },
          nb::arg("shape"),
          "Returns f's fingerprint; an Error unless f is a function of single images.")
      .def("certify", certify_images, nb::arg("images").noconvert(), nb::arg("indices"),
           nb::arg("sigma"), nb::arg("budget"), nb::arg("seed"))
      .def("predict", predict_image, nb::arg("image").noconvert(), nb::arg("sigma"), nb::arg("n"),
           nb::arg("alpha"), nb::arg("seed"), nb::arg("index"));
}

}  // namespace fedsmooth::python
