#include "fedsmooth/jobs/certification/inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth::jobs {
namespace {

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

}  // namespace

std::vector<Input> load_inputs(const std::vector<std::string>& names, const DataOptions& data,
                               std::optional<Dataset>& test) {
  if (std::any_of(names.begin(), names.end(), is_index)) test = load_dataset(data, Split::kTest);
  std::vector<Input> inputs;
  for (const std::string& name : names) {
    inputs.push_back(load_input(name, test ? &*test : nullptr));
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
