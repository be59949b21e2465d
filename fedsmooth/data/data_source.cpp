#include "fedsmooth/data/data_source.h"

#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

// Made once in a process, which may train and certify many times. Copies share the images.
Dataset read_shapes(const std::filesystem::path& /*root*/, Split split) {
  if (split == Split::kTest) {
    static const Dataset test = make_shapes(split, 2'000, /*seed=*/0);
    return test;
  }
  static const Dataset train = make_shapes(split, 10'000, /*seed=*/0);
  return train;
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
