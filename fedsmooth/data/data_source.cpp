#include "fedsmooth/data/data_source.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

Dataset read_shapes(const std::filesystem::path& /*root*/, Split split) {
  return make_shapes(split, split == Split::kTrain ? 10'000 : 2'000, /*seed=*/0);
}

std::vector<DataSource>& table() {
  static std::vector<DataSource> rows = {
      {"cifar10", read_cifar10}, {"cifar100", read_cifar100},         {"idx", read_idx_folder},
      {"arrays", read_arrays},   {"image-folder", read_image_folder}, {"shapes", read_shapes}};
  return rows;
}

const DataSource* find_row(const std::string& name) {
  const auto row = std::ranges::find(table(), name, &DataSource::name);
  return row == table().end() ? nullptr : &*row;
}

}  // namespace

bool add_data_source(DataSource source) {
  if (find_row(source.name)) throw Error("data set \"{}\": is known already", source.name);
  table().push_back(std::move(source));
  return true;
}

const DataSource& find_data_source(const std::string& name) {
  if (const DataSource* row = find_row(name)) return *row;
  throw Error("data set \"{}\": unknown; the known ones are {}", name,
              fmt::join(data_source_names(), ", "));
}

std::vector<std::string> data_source_names() {
  std::vector<std::string> names;
  for (const DataSource& row : table()) names.push_back(row.name);
  return names;
}

}  // namespace fedsmooth
