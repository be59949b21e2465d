// Conformal sets of our own models; see smoothing/conformal.h.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "fedsmooth/records/conformal_file.h"
#include "fedsmooth/smoothing/conformal.h"
#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

// The law under which Python calibrates and answers.
const NoiseLaw& kNoise = kFloatNoise;

// Evaluates single noisy passes of a model.
class OnePass {
 public:
  OnePass(const Model& model, std::string sha256, const std::string& device, int threads)
      : sha256_(std::move(sha256)), input_(model.network.input) {
    const jobs::Context context{device, threads};
    jobs::check_context(context);
    f_ = choose_classifier(device, model, kNoise);
    threads_ = jobs::thread_count(context);
  }

  ConformalCalibration calibrate(const Given<float>& given, const std::vector<int64_t>& labels,
                                 double sigma, double epsilon, double coverage, uint64_t seed) {
    const Array images = check_images(given);
    if (images.size(0) != std::ssize(labels)) {
      throw Error("images: {} with {} labels", images.size(0), labels.size());
    }
    for (const int64_t label : labels) {
      if (label < 0 || label >= f_.classes) {
        throw Error("labels: {}; there are {} classes", label, f_.classes);
      }
    }
    ConformalCalibration c;
    c.noise = &kNoise;
    c.epsilon = epsilon;
    c.coverage = coverage;
    c.subject.model_sha256 = sha256_;
    c.subject.sigma = sigma;
    c.subject.seed = seed;
    c.subject.images = std::ssize(labels);
    c.subject.base = f_.description;
    std::vector<double> scores(labels.size());
    const double level = conformal_level(coverage, epsilon, sigma, *c.noise);
    // Throws for too few images before the passes, which take long.
    if (conformal_rank(std::ssize(scores), level) > std::ssize(scores)) {
      conformal_quantile(scores, level);
    }
    c.subject.fingerprint =
        pass(images, sigma, conformal_key(seed, ConformalDraw::kCalibration),
             [&](int64_t i, const std::vector<double>& found) { scores[i] = found[labels[i]]; });
    c.quantile = conformal_quantile(std::move(scores), level);
    if (!std::isfinite(c.quantile)) {
      throw Error("model: too many calibration images have logits that are not finite");
    }
    return c;
  }

  /// Returns which classes are in the set of each image, [N, K].
  Numpy<uint8_t> sets(const ConformalCalibration& c, const Given<float>& given, uint64_t seed) {
    const Array images = check_images(given);
    check_is_about(c);
    Array in_set({images.size(0), f_.classes}, Array::Type::kByte);
    const std::string fingerprint =
        pass(images, *c.subject.sigma, conformal_key(seed, ConformalDraw::kAnswer),
             [&](int64_t i, const std::vector<double>& scores) {
               for (int64_t k = 0; k < f_.classes; ++k) {
                 in_set.bytes()[i * f_.classes + k] = scores[k] <= c.quantile;
               }
             });
    if (images.size(0) > 0 && fingerprint != *c.subject.fingerprint &&
        f_.description == c.subject.base.value_or("")) {
      throw Error("conformal: was calibrated with other logits on the same kind of device");
    }
    return to_numpy<uint8_t>(in_set);
  }

  void check_is_about(const ConformalCalibration& c) const {
    if (*c.subject.model_sha256 != sha256_) {
      throw Error("conformal: is about another model, with SHA-256 {}...; this one has {}...",
                  c.subject.model_sha256->substr(0, 12), sha256_.substr(0, 12));
    }
    if (c.noise != &kNoise) {
      throw Error("conformal: was calibrated with {} noise; `fedsmooth predict --sets` draws it",
                  c.noise->name);
    }
  }

 private:
  Array check_images(const Given<float>& given) const {
    Array images = to_array(given);
    const Sizes sizes = images.sizes();
    if (images.axes() != 4 || !std::equal(input_.begin(), input_.end(), sizes.begin() + 1)) {
      throw Error("images: [{}], the network takes [N, {}]", fmt::join(sizes, ", "),
                  fmt::join(input_, ", "));
    }
    const auto inside = [](float value) { return value >= 0 && value <= 1; };  // NaN is not
    if (!std::all_of(images.floats(), images.floats() + images.count(), inside)) {
      throw Error("images: pixel values outside [0, 1]; divide bytes by 255 and do not normalise");
    }
    return images;
  }

  std::string pass(const Array& images, double sigma, Key key,
                   const std::function<void(int64_t, std::vector<double>)>& take) {
    return do_in_background(stop_, [&] {
      return one_pass_scores(
          f_, kNoise, sigma, key, images.size(0),
          [&](int64_t i) -> LabelledImage {
            return {images[i], static_cast<uint32_t>(i)};
          },
          take, threads_, [this] { return stop_->load(); });
    });
  }

  BaseClassifier f_;
  std::string sha256_;
  Shape input_;
  int threads_ = 1;
  StopFlag stop_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

void bind_conformal(nb::module_& m) {
  nb::class_<ConformalCalibration>(m, "ConformalCalibration", "A threshold and what it holds for.")
      .def_prop_ro("epsilon", [](const ConformalCalibration& c) { return c.epsilon; })
      .def_prop_ro("coverage", [](const ConformalCalibration& c) { return c.coverage; })
      .def_prop_ro("quantile", [](const ConformalCalibration& c) { return c.quantile; })
      .def_prop_ro("sigma", [](const ConformalCalibration& c) { return *c.subject.sigma; })
      .def_prop_ro("images", [](const ConformalCalibration& c) { return *c.subject.images; });
  m.def("read_conformal", read_conformal, nb::arg("path"));
  m.def("write_conformal", write_conformal, nb::arg("path"), nb::arg("calibration"));
  nb::class_<OnePass>(m, "OnePass", "Single noisy passes of a model.")
      .def(nb::init<const Model&, std::string, const std::string&, int>(), nb::arg("model"),
           nb::arg("sha256"), nb::arg("device"), nb::arg("threads"))
      .def("calibrate", &OnePass::calibrate, nb::arg("images").noconvert(), nb::arg("labels"),
           nb::arg("sigma"), nb::arg("epsilon"), nb::arg("coverage"), nb::arg("seed"))
      .def("check_is_about", &OnePass::check_is_about, nb::arg("calibration"))
      .def("sets", &OnePass::sets, nb::arg("calibration"), nb::arg("images").noconvert(),
           nb::arg("seed"));
}

}  // namespace fedsmooth::python
