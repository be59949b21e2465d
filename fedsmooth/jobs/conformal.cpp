#include "fedsmooth/jobs/conformal.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/jobs/certification/inputs.h"
#include "fedsmooth/records/run.h"
#include "fedsmooth/smoothing/conformal.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

// The images that calibrate, and those that are left for a measurement.
struct Parts {
  Dataset calibration, test;
  std::vector<int64_t> calibrates, is_left;  // indices in `calibration` and in `test`
};

// Returns `count` of `size` images, drawn at random: the sets' guarantee requires images that are
// exchangeable with those to come, and a file may alternate between classes.
std::vector<int64_t> draw_images(int64_t count, int64_t size, uint64_t seed) {
  Draws draws(Stream{conformal_key(seed, ConformalDraw::kChoice)});
  std::vector<int64_t> indices = draws.choose(count, size);
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::vector<int64_t> all_images(int64_t size) {
  std::vector<int64_t> indices(size);
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

Parts choose_parts(const DataOptions& data, int64_t images, uint64_t seed) {
  Parts parts;
  parts.calibration = load_dataset(data, Split::kTest);
  const int64_t size = parts.calibration.size();
  if (images < 0 || images > size) {
    throw Error("--images={}: there are {} images to calibrate on", images, size);
  }
  const bool held_out = data.held_out > 0;
  const int64_t count = images > 0 ? images : held_out ? size : (size + 1) / 2;
  parts.calibrates = draw_images(count, size, seed);
  if (held_out) {
    DataOptions whole = data;
    whole.held_out = 0;
    parts.test = load_dataset(whole, Split::kTest);
    parts.is_left = all_images(parts.test.size());
  } else {
    parts.test = parts.calibration;
    for (int64_t i = 0; i < size; ++i) {
      if (!std::binary_search(parts.calibrates.begin(), parts.calibrates.end(), i)) {
        parts.is_left.push_back(i);
      }
    }
  }
  return parts;
}

std::function<LabelledImage(int64_t)> images_of(const Dataset& data,
                                                const std::vector<int64_t>& indices) {
  return [&](int64_t i) -> LabelledImage {
    return {data.image(indices[i]), static_cast<uint32_t>(indices[i]), data.label(indices[i])};
  };
}

// Throws an Error if a run among the models may have trained on images that `data` holds out, as
// one that held out others. Runs whose clients had images of their own are not compared.
void check_unseen(const std::vector<std::string>& models, const DataOptions& data) {
  if (data.held_out == 0) return;
  const std::string others = digest(load_dataset(data, Split::kTrain));
  for (const fs::path path : models) {
    if (!fs::is_directory(path) || !fs::exists(path / "clients.tsv")) continue;
    if (trained_data_sha256(path).value_or(others) == others) continue;
    throw Error(
        "data.held_out={}: {} was not trained on exactly the other images, so it may have seen "
        "some of these; calibrate on test images (--data.held_out=0), or on those that it held out",
        data.held_out, path.string());
  }
}

std::vector<std::string> models_of(const ConformalArguments& a) {
  std::vector<std::string> models = {a.path};
  models.insert(models.end(), a.with.begin(), a.with.end());
  return models;
}

bool is_in(const std::vector<double>& scores, int64_t label, double quantile) {
  return scores.at(label) <= quantile;
}

SetsOnTestImages measure(const ModelUnderTest& subject, const ConformalCalibration& c,
                         const Parts& parts, const Context& context) {
  SetsOnTestImages found{std::ssize(parts.is_left)};
  std::atomic<int64_t> covered = 0, classes = 0, empty = 0;
  const auto take = [&](int64_t i, const std::vector<double>& scores) {
    int64_t size = 0;
    for (const double score : scores) size += score <= c.quantile;
    covered += is_in(scores, parts.test.label(parts.is_left[i]), c.quantile);
    classes += size;
    empty += size == 0;
  };
  one_pass_scores(subject.f, *c.noise, subject.sigma,
                  conformal_key(*c.subject.seed, ConformalDraw::kTest), found.images,
                  images_of(parts.test, parts.is_left), take, thread_count(context),
                  context.stopped);
  const auto images = static_cast<double>(found.images);
  found.coverage = static_cast<double>(covered) / images;
  found.mean_size = static_cast<double>(classes) / images;
  found.empty = empty;
  return found;
}

// Warns if the images that are left are covered implausibly seldom. If they were like those that
// calibrated, any n of all n + N images would be as likely to have calibrated: the number of the
// others up to the quantile then follows a hypergeometric law.
void warn_if_unlike(const ConformalCalibration& c, const SetsOnTestImages& test,
                    const Context& context) {
  constexpr double kImplausible = 0.001;
  const int64_t n = *c.subject.images;
  const double level = conformal_level(c.coverage, c.epsilon, *c.subject.sigma, *c.noise);
  const int64_t covered = std::llround(test.coverage * static_cast<double>(test.images));
  if (fisher_p_value(conformal_rank(n, level), n, covered, test.images) >= kImplausible) return;
  context.warn(fmt::format(
      "warning: sets hold the label of only {:.1f}% of the other images, fewer than of images like "
      "those that calibrated: did training see these, or is their order not random?",
      100 * test.coverage));
}

ConformalCalibration calibrate_on(const Parts& parts, const ModelUnderTest& subject, double epsilon,
                                  double coverage, uint64_t seed, const Context& context) {
  const NoiseLaw& law = *subject.experiment.certify.noise;
  const double level = conformal_level(coverage, epsilon, subject.sigma, law);
  const auto count = std::ssize(parts.calibrates);
  std::vector<double> scores(count);
  if (conformal_rank(count, level) > count) conformal_quantile(scores, level);  // throws early
  ConformalCalibration c;
  c.noise = &law;
  c.epsilon = epsilon;
  c.coverage = coverage;
  const std::string fingerprint = one_pass_scores(
      subject.f, law, subject.sigma, conformal_key(seed, ConformalDraw::kCalibration), count,
      images_of(parts.calibration, parts.calibrates),
      [&](int64_t i, const std::vector<double>& found) {
        scores[i] = found.at(parts.calibration.label(parts.calibrates[i]));
      },
      thread_count(context), context.stopped);
  c.quantile = conformal_quantile(std::move(scores), level);
  if (!std::isfinite(c.quantile)) {
    throw Error("{}: too many calibration images have logits that are not finite",
                subject.model_path.string());
  }
  c.subject = identify(subject, parts.calibration, digest(parts.calibration));
  c.subject.seed = seed;
  c.subject.every = c.subject.limit = std::nullopt;
  c.subject.images = count;
  c.subject.fingerprint = fingerprint;
  return c;
}

void check_is_about(const ConformalCalibration& c, const fs::path& file,
                    const ModelUnderTest& subject, const std::string& fingerprint,
                    const Context& context) {
  if (!check_same_classifier({c.subject, *c.noise}, identify_classifier(subject, fingerprint),
                             file)) {
    return;
  }
  context.warn(fmt::format("warning: {} was calibrated with {}, and this is {}", file.string(),
                           c.subject.base.value_or("unknown"), subject.f.description));
}

// Returns the options of the file, then those of the user, which win.
Overrides options_of_file(const ConformalCalibration& c, const Overrides& given) {
  Overrides options = {{"certify.sigma", fmt::format("{}", *c.subject.sigma)},
                       {"certify.noise", std::string(option_of_law(*c.noise))}};
  options.insert(options.end(), given.begin(), given.end());
  return options;
}

// Throws an Error for a run of several groups: a majority gives votes, but no scores of classes.
void refuse_groups(const std::string& path) {
  if (!is_run_of_groups(path)) return;
  throw Error(
      "{}: is a run of several groups, whose majority has no scores; each of them is a model, {} "
      "for one",
      path, group_folder(path, 1).string());
}

}  // namespace

Calibrated calibrate(const ConformalArguments& a, const Overrides& overrides,
                     const Context& context) {
  check_context(context);
  refuse_groups(a.path);
  const fs::path folder = fs::is_directory(a.path) ? fs::path(a.path) : fs::path();
  const fs::path file = !a.out.empty()    ? fs::path(a.out)
                        : !folder.empty() ? folder / "conformal.json"
                                          : fs::path(a.path).replace_extension(".conformal.json");
  if (fs::exists(file)) throw Error("{}: exists; choose another --out", file.string());
  if (!a.with.empty() && a.out.empty()) throw Error("--with: give --out too");
  const uint64_t seed = given_seed(overrides).value_or(random_seed());
  const DataOptions data = data_of_model(a.path, overrides);
  check_unseen(models_of(a), data);
  const Parts parts = choose_parts(data, a.images, seed);
  const ModelUnderTest subject = load_under_test({a.path, a.with}, overrides, &parts.calibration,
                                                 image_shape(parts.calibration), context.device);
  Calibrated made{file, calibrate_on(parts, subject, a.epsilon, a.coverage, seed, context)};
  if (!parts.is_left.empty()) {
    made.calibration.test = measure(subject, made.calibration, parts, context);
    warn_if_unlike(made.calibration, *made.calibration.test, context);
  }
  write_conformal(file, made.calibration);
  return made;
}

std::vector<SetAnswer> predict_sets(const PredictArguments& a, const fs::path& file,
                                    const Overrides& given, const Context& context) {
  check_context(context);
  refuse_groups(a.path);
  const ConformalCalibration c = read_conformal(file);
  const Overrides overrides = options_of_file(c, given);
  std::optional<Dataset> data;
  const std::vector<Input> inputs = load_inputs(a.images, a.path, overrides, data);
  if (inputs.empty()) return {};
  const Sizes sizes = inputs[0].image.sizes();
  const ModelUnderTest subject =
      load_under_test({a.path, a.with}, overrides, data ? &*data : nullptr,
                      {sizes[0], sizes[1], sizes[2]}, context.device);
  check_is_about(c, file, subject, check_is_function(subject.f, sizes).fingerprint, context);
  const uint64_t seed = given_seed(overrides).value_or(random_seed());
  const std::vector<std::string> names = name_classes(subject);
  std::vector<SetAnswer> answers;
  for (const Input& input : inputs) answers.push_back({input.name, input.label, {}, names, seed});
  one_pass_scores(
      subject.f, *c.noise, subject.sigma, conformal_key(seed, ConformalDraw::kAnswer),
      std::ssize(inputs),
      [&](int64_t i) -> LabelledImage {
        return {inputs[i].image, inputs[i].index};
      },
      [&](int64_t i, const std::vector<double>& scores) {
        for (int64_t label = 0; label < std::ssize(scores); ++label) {
          if (is_in(scores, label, c.quantile)) answers[i].classes.push_back(label);
        }
      },
      thread_count(context), context.stopped);
  return answers;
}

}  // namespace fedsmooth::jobs
