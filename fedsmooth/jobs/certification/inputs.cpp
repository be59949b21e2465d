#include "fedsmooth/jobs/certification/inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/data/sources.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Numbers a file's noise stream by its content, so that its votes do not depend on other files.
uint32_t content_name(const Array& pixels) {
  const std::string digest =
      sha256({static_cast<const char*>(pixels.data()), static_cast<size_t>(pixels.byte_count())});
  return static_cast<uint32_t>(std::stoul(digest.substr(0, 8), nullptr, 16));
}

bool has_equal_channels(const Array& pixels) {
  const int64_t area = pixels.size(1) * pixels.size(2);
  const uint8_t* first = pixels.bytes();
  return std::equal(first, first + area, first + area) &&
         std::equal(first, first + area, first + 2 * area);
}

// Returns the channels of the model's images; 3 for a TorchScript module, which does not state
// them.
int64_t channels_of_model(const fs::path& path) {
  if (is_run_of_groups(path)) return channels_of_model(group_folder(path, 1));
  const fs::path file = fs::is_directory(path) ? path / "model.safetensors" : path;
  return file.extension() == ".pt" ? 3 : load_model(file).network.input[0];
}

// Reads pixels [3, H, W] of a file, or [1, H, W] if they are grey and the model is for grey images.
Array read_pixels(const std::string& name, const std::string& model, const Dataset* data) {
  const Array pixels = read_image(name);
  if (!has_equal_channels(pixels)) return pixels;
  const int64_t channels = data ? data->shape()[0] : channels_of_model(model);
  if (channels != 1) return pixels;
  Array grey({1, pixels.size(1), pixels.size(2)}, Array::Type::kByte);
  std::copy_n(pixels.bytes(), grey.count(), grey.bytes());
  return grey;
}

Input load_input(const std::string& name, const std::string& model, const Dataset* data) {
  if (name.empty()) throw Error("the name of an image is empty");
  if (!is_index(name)) {
    const Array pixels = read_pixels(name, model, data);
    return {name, to_unit_interval(pixels), {}, content_name(pixels)};
  }
  const int64_t index = std::stoll(name);
  if (index >= data->size()) {
    throw Error("{}: the test set has images 0 to {}", name, data->size() - 1);
  }
  return {name, data->image(index), data->class_names[data->labels[index]],
          static_cast<uint32_t>(index)};
}

}  // namespace

std::vector<Input> load_inputs(const std::vector<std::string>& names, const std::string& model,
                               const Overrides& overrides, std::optional<Dataset>& test) {
  if (std::any_of(names.begin(), names.end(), is_index)) {
    test = load_dataset(data_of_model(model, overrides), Split::kTest);
  }
  std::vector<Input> inputs;
  for (const std::string& name : names) {
    inputs.push_back(load_input(name, model, test ? &*test : nullptr));
    if (inputs.back().image.sizes() != inputs[0].image.sizes()) {
      throw Error("{}: differs in size from {}", name, names[0]);
    }
  }
  return inputs;
}

std::vector<std::string> name_classes(const ModelUnderTest& subject) {
  std::vector<std::string> names = subject.class_names;
  for (auto c = std::ssize(names); c < subject.f.classes; ++c) {
    names.push_back(fmt::format("class {}", c));
  }
  return names;
}

}  // namespace fedsmooth::jobs
