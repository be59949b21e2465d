#include "fedsmooth/jobs/training/image_tables.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/training/training_context.h"
#include "fedsmooth/model/safetensors.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "weights.";
constexpr int64_t kTogether = 1000;  // images whose votes are counted at once

std::map<std::string, std::string> identity(const TrainingContext& setting) {
  return {{"device", setting.chosen.device}, {"data_sha256", setting.train_digest.get()}};
}

Error unreadable(const fs::path& path) {
  return Error(
      "{}: is of another run or of other data; remove it and the checkpoint to begin again",
      path.string());
}

}  // namespace

ImageTables::ImageTables(const TrainingContext& setting, const Experiment& experiment,
                         const fs::path& folder)
    : setting_(setting), experiment_(experiment), path_(folder / "images.safetensors") {
  if (!fs::exists(path_)) return;
  const Safetensors content = parse_safetensors(read_file(path_), path_.string());
  if (check_is_of_training(content.metadata, experiment, path_.string()) != identity(setting)) {
    throw unreadable(path_);
  }
  for (const auto& [name, table] : content.tensors) {
    int64_t number = 0;
    const std::string digits = name.substr(std::min(name.size(), std::strlen(kPrefix)));
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec != std::errc() || table.sizes() != Sizes{setting.train.size()}) {
      throw unreadable(path_);
    }
    tables_[number] = table;
  }
}

Array ImageTables::weights(const ServerState& state, const LocalTask& task) {
  const std::optional<int64_t> number = objective_of(task.method).table(task);
  if (!number) return {};
  if (!tables_.contains(*number)) {
    tables_[*number] = make(*number, state, task);
    write();
  }
  return tables_.at(*number);
}

Array ImageTables::make(int64_t number, const ServerState& state, const LocalTask& task) const {
  const Model model = {setting_.network, state.global, task.smoothing.sigma,
                       setting_.train.class_names};
  const auto sampler = make_sampler(choose_classifier(setting_.device, model, kFloatNoise),
                                    kFloatNoise, setting_.threads, setting_.stopped);
  // Round 0 of this purpose keys the votes of cat-rs's teacher (teacher.cpp).
  const Key key =
      make_key(experiment_.seed, Purpose::kScreening, static_cast<uint64_t>(number) + 1);
  const RightVotes votes = [&](const std::vector<int64_t>& images, int64_t first, int64_t count) {
    std::vector<int64_t> right;
    for (int64_t begin = 0; begin < std::ssize(images); begin += kTogether) {
      const int64_t end = std::min(begin + kTogether, std::ssize(images));
      std::vector<VoteRequest> requests;
      for (int64_t j = begin; j < end; ++j) {
        const Stream stream{key, static_cast<uint32_t>(images[j])};
        requests.push_back({setting_.train.image(images[j]), model.sigma, count, stream, first});
      }
      const std::vector<Votes> counted = sampler->count_all(requests);
      for (int64_t j = begin; j < end; ++j) {
        right.push_back(counted[j - begin][setting_.train.label(images[j])]);
      }
    }
    return right;
  };
  const auto before = tables_.lower_bound(number);
  try {
    return objective_of(task.method)
        .weigh(task, votes, before == tables_.begin() ? Array() : std::prev(before)->second);
  } catch (const Interrupted&) {
    throw Interrupted{"interrupted while images were weighed; continue with --resume"};
  }
}

void ImageTables::write() const {
  Safetensors content{{}, bind_to_training(identity(setting_), experiment_)};
  for (const auto& [number, table] : tables_) {
    content.tensors[kPrefix + std::to_string(number)] = table;
  }
  write_file(path_, format_safetensors(content));
}

}  // namespace fedsmooth::jobs
