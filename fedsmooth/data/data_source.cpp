#include "fedsmooth/data/data_source.h"

#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

Dataset read_shapes(const std::filesystem::path& /*root*/, Split split) {
  return make_shapes(split, split == Split::kTrain ? 10'000 : 2'000, /*seed=*/0);
}

}  // namespace

Registry<DataSource>& data_sources() {
  static Registry<DataSource> table("data.name", {{"cifar10", read_cifar10},
                                                  {"cifar100", read_cifar100},
                                                  {"idx", read_idx_folder},
                                                  {"arrays", read_arrays},
                                                  {"image-folder", read_image_folder},
                                                  {"shapes", read_shapes}});
  return table;
}

}  // namespace fedsmooth
