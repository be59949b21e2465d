#include "fedsmooth/jobs/training/teacher.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/model/safetensors.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

constexpr double kSigma = 0.25;  // of the teacher, for every smoothing.sigma
constexpr const char* kVotes = "votes";

fs::path model_file(const fs::path& teacher) {
  return fs::is_directory(teacher) ? teacher / "model.safetensors" : teacher;
}

// Returns what the votes depend on besides the experiment, from which a trained teacher follows.
Provenance identity(const TrainingContext& setting, const Experiment& e) {
  Provenance found = {{"teacher", e.objective.teacher},
                      {"votes", std::to_string(e.objective.teacher_votes)},
                      {"data_sha256", setting.train_digest.get()}};
  if (e.objective.teacher != "auto") {
    found["teacher_sha256"] = sha256(read_file(model_file(e.objective.teacher)));
  }
  return found;
}

Model train_teacher(const TrainingContext& setting, Experiment e, const Partition& partition) {
  e.train.method = Method::kGaussian;
  e.smoothing.sigma = kSigma;
  e.objective = {};
  ServerState state;
  state.global = initial_weights(setting.network, make_key(e.seed, Purpose::kWeights));
  const auto on_round = [&](const ServerState&, const RoundReport&) { return !setting.stopped(); };
  fedsmooth::train({local_task(setting, e), train_options(setting, e), partition, state, on_round},
                   *setting.chosen.executor);
  if (state.round < e.train.rounds) {
    throw Interrupted{"interrupted while the teacher was trained; begin that again with --resume"};
  }
  return {setting.network, state.global, kSigma, setting.train.class_names};
}

Model load_teacher(const fs::path& path, const Dataset& data) {
  const Model model = load_model(model_file(path));
  if (std::ssize(model.class_names) != data.classes()) {
    throw Error("objective.teacher={}: has {} classes, the data has {}", path.string(),
                model.class_names.size(), data.classes());
  }
  return model;
}

Array count_votes(const TrainingContext& setting, const Experiment& e, const Model& teacher) {
  const BaseClassifier f = choose_classifier(setting.device, teacher, kFloatNoise);
  const auto sampler = make_sampler(f, kFloatNoise, setting.threads, setting.stopped);
  Array shares({setting.train.size(), f.classes});
  const int64_t n = e.objective.teacher_votes;
  const int64_t together = sampler->requests_at_once(n);
  for (int64_t first = 0; first < setting.train.size(); first += together) {
    std::vector<VoteRequest> requests;
    for (int64_t i = first; i < std::min(first + together, setting.train.size()); ++i) {
      const Stream stream{make_key(e.seed, Purpose::kScreening), static_cast<uint32_t>(i)};
      requests.push_back({setting.train.image(i), kSigma, n, stream});
    }
    float* share = shares[first].floats();
    for (const Votes& votes : sampler->count_all(requests)) {
      for (const int64_t v : votes) *share++ = static_cast<float>(v) / static_cast<float>(n);
    }
  }
  return shares;
}

Array read_votes(const fs::path& path, const Provenance& expected, const Experiment& e,
                 const Sizes& sizes) {
  const Safetensors content = parse_safetensors(read_file(path), path.string());
  const auto votes = content.tensors.find(kVotes);
  if (check_is_of_training(content.metadata, e, path.string()) != expected ||
      votes == content.tensors.end() || votes->second.sizes() != sizes) {
    throw Error("{}: is of another teacher or of other data; remove it to make it again",
                path.string());
  }
  return votes->second;
}

}  // namespace

Array teacher_votes(const TrainingContext& setting, const Experiment& e, const Partition& partition,
                    const fs::path& folder) {
  const fs::path path = folder / "teacher.safetensors";
  const auto expected = identity(setting, e);
  if (fs::exists(path)) {
    return read_votes(path, expected, e, {setting.train.size(), setting.train.classes()});
  }
  const Model teacher = e.objective.teacher == "auto"
                            ? train_teacher(setting, e, partition)
                            : load_teacher(e.objective.teacher, setting.train);
  try {
    const Array votes = count_votes(setting, e, teacher);
    write_file(path, format_safetensors({{{kVotes, votes}}, bind_to_training(expected, e)}));
    return votes;
  } catch (const Interrupted&) {
    throw Interrupted{"interrupted while the teacher voted; begin that again with --resume"};
  }
}

}  // namespace fedsmooth::jobs
