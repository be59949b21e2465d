// fedsmooth predict RUN_OR_MODEL IMAGE...: PREDICT for image files or test-set indices.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/progress.h"
#include "cli/subject.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/config/fields.h"
#include "fedsmooth/data/sources.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::cli {
namespace {

struct Arguments {
  std::string path;
  std::vector<std::string> images;
  int64_t n = 1000;
};

struct Input {
  std::string name;
  Array image;         // [C, H, W] in [0, 1]
  uint32_t index = 0;  // names its noise
};

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Names a file's noise by its content, so that it gets the same votes alone and among others.
uint32_t content_name(const Array& pixels) {
  const std::string digest =
      sha256({static_cast<const char*>(pixels.data()), static_cast<size_t>(pixels.byte_count())});
  return static_cast<uint32_t>(std::stoul(digest.substr(0, 8), nullptr, 16));
}

Input load_input(const std::string& name, const Dataset* data) {
  if (name.empty()) throw Error("predict: the name of an image is empty");
  if (!is_index(name)) {
    const Array pixels = read_image(name);
    return {name, to_unit_interval(pixels), content_name(pixels)};
  }
  const int64_t index = std::stoll(name);
  if (index >= data->size()) {
    throw Error("{}: the test set has images 0 to {}", name, data->size() - 1);
  }
  return {name, data->image(index), static_cast<uint32_t>(index)};
}

// All before the first answer: a refused command prints nothing.
std::vector<Input> load_inputs(const std::vector<std::string>& names, const Dataset* data) {
  std::vector<Input> inputs;
  for (const std::string& name : names) {
    inputs.push_back(load_input(name, data));
    if (inputs.back().image.sizes() != inputs[0].image.sizes()) {
      throw Error("{}: differs in size from {}", name, names[0]);
    }
  }
  return inputs;
}

std::string class_name(const Subject& subject, int64_t c) {
  if (c == kAbstain) return "abstain";
  return c < static_cast<int64_t>(subject.class_names.size()) ? subject.class_names[c]
                                                              : fmt::format("class {}", c);
}

// The three classes with the most votes.
std::string leading_votes(const Subject& subject, const Votes& votes) {
  std::vector<int64_t> order(votes.size());
  for (size_t c = 0; c < order.size(); ++c) order[c] = static_cast<int64_t>(c);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return votes[a] > votes[b]; });
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min<size_t>(3, order.size()); ++i) {
    parts.push_back(fmt::format("{} {}", class_name(subject, order[i]), votes[order[i]]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Noise that an adversary can foresee lets him try inputs offline until one is answered wrongly.
std::optional<uint64_t> given_seed(const Overrides& overrides) {
  Experiment any;
  std::optional<uint64_t> seed;
  for (const auto& [key, value] : overrides) {
    if (key != "seed" && key != "certify.seed") continue;
    set_key(any, key, value);
    seed = key == "seed" ? any.seed : any.certify.seed;
  }
  return seed;
}

// Certificates are about one classifier: this arithmetic, this noise.
void warn_of_other_classifier(const std::string& path, const Subject& subject,
                              const std::string& fingerprint) {
  const std::filesystem::path table = table_path(path, "certificates");
  if (!std::filesystem::exists(table) || !std::filesystem::exists(sidecar_path(table))) return;
  const std::string name = sidecar_path(table).string();
  const nlohmann::json identity = read_sidecar(table)["identity"];
  const auto certified = find_string(identity, "fingerprint", name);
  const auto noise = find_string(identity, "noise", name).value_or("float");
  std::vector<std::string> differences;
  if (certified && *certified != fingerprint) {
    differences.push_back(fmt::format("its logits (here {}, there {})", subject.f.description,
                                      find_string(identity, "base", name).value_or("unknown")));
  }
  if (find_number(identity, "sigma", name).value_or(subject.sigma) != subject.sigma) {
    differences.push_back(fmt::format("sigma (here {})", subject.sigma));
  }
  if (noise != noise_name(subject.f.noise_kind)) differences.push_back("the kind of noise");
  if (differences.empty()) return;
  say(fmt::format("warning: this is not the classifier that was certified in {}; it differs in {}",
                  table.string(), fmt::join(differences, " and ")));
}

int run_predict(const Arguments& a, const Overrides& overrides, const Common& common) {
  const int threads = thread_count(common);
  std::optional<Dataset> data;
  if (std::any_of(a.images.begin(), a.images.end(), is_index)) {
    data = load_dataset(subject_experiment(a.path, overrides).data, Split::kTest);
  }
  const Dataset* test = data ? &*data : nullptr;
  const std::vector<Input> inputs = load_inputs(a.images, test);
  const Sizes sizes = inputs[0].image.sizes();
  const Subject subject =
      load_subject(a.path, overrides, test, {sizes[0], sizes[1], sizes[2]}, common.device);
  const Experiment& e = subject.experiment;
  check_predict_options(a.n, e.certify.alpha, subject.sigma);

  const std::unique_ptr<Sampler> sampler = make_sampler(subject.f, threads);
  warn_of_other_classifier(a.path, subject, sampler->check(sizes));
  const uint64_t seed = given_seed(overrides).value_or(random_seed());
  nlohmann::json summary = nlohmann::json::array();
  for (const Input& input : inputs) {
    if (interrupted()) throw Interrupted{"interrupted"};
    const Prediction found =
        predict(*sampler, input.image, subject.sigma, a.n, e.certify.alpha, seed, input.index);
    if (common.json) {
      summary.push_back({{"image", input.name},
                         {"predict", found.predict},
                         {"class", class_name(subject, found.predict)},
                         {"votes", found.votes},
                         {"seed", seed}});
    } else {
      fmt::print("{}\t{}\t{} of {} votes\tseed {}\n", input.name,
                 class_name(subject, found.predict), leading_votes(subject, found.votes), a.n,
                 seed);
    }
  }
  if (common.json) fmt::print("{}\n", dump_json(summary));
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Common& common) {
  auto a = std::make_shared<Arguments>();
  Command c(
      app, common, "predict", "the smoothed classifier's answer for images, or an abstention",
      "  fedsmooth predict runs/quickstart/smoothadv 0 1 2\n"
      "  fedsmooth predict model.safetensors cat.png --sigma 0.25 --n 10000\n"
      "  fedsmooth predict model.safetensors cat.png --seed=7   # repeats the votes of seed 7");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.arguments("images", a->images, "PNG or JPEG files, or indices of the test set");
  c.option("n", a->n, "votes per image");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("alpha", "certify.alpha", "failure probability per image");
  c.alias("noise", "certify.noise", "float, or exact: without rounding errors, on CPU cores");
  c.on_run([a, &common](const Overrides& overrides) { return run_predict(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
