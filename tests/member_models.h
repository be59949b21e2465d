// Models that are certified together, made of the nearest-mean model.
#pragma once

#include <filesystem>
#include <string>

#include "fedsmooth/base/file.h"
#include "fedsmooth/base/random.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// Adds `scale` times normal numbers of `seed` to the weights of the linear layer.
inline Model with_other_weights(Model model, uint64_t seed, float scale) {
  Array weights = model.weights.front().clone();
  std::vector<float> moved(weights.count());
  fill_normal({make_key(seed, Purpose::kProbe)}, 0, moved.data(), weights.count());
  for (int64_t i = 0; i < weights.count(); ++i) weights.floats()[i] += scale * moved[i];
  model.weights.front() = weights;
  return model;
}

/// Removes the names of a model's classes from its file, so that it fits data of other classes.
inline void forget_classes(const std::filesystem::path& file) {
  Model model = load_model(file);
  model.class_names.clear();
  write_file(file, format_model(model));
}

/// Writes `model` with other weights to `path`.
inline void write_member(const Model& model, const std::filesystem::path& path, uint64_t seed,
                         float scale) {
  write_file(path, format_model(with_other_weights(model, seed, scale)));
}

}  // namespace fedsmooth
