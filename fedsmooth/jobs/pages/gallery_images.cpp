#include "fedsmooth/jobs/pages/gallery_images.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/experiment.h"
#include "fedsmooth/data/data_source.h"
#include "fedsmooth/data/dataset.h"
#include "fedsmooth/report/gallery.h"

namespace fedsmooth::jobs {
namespace {

constexpr size_t kMostGalleries = 6;  // a page about more runs would be large, and folds them

// Returns the data options of a run: those of its experiment, else those that its table states.
DataOptions data_of(const RunRecord& run, const std::string& root) {
  DataOptions options;
  if (run.experiment.empty()) {
    options.held_out = run.identity.held_out.value_or(0);
  } else {
    options = parse_experiment(run.experiment, run.name).data;
  }
  // The run may have been certified on other data than it was trained on.
  options.name = run.identity.data.value_or(options.name);
  if (!root.empty()) options.root = root;
  return options;
}

struct TestSet {
  Dataset data;
  std::string sha256, trouble;
};

TestSet load_test_set(const DataOptions& options) {
  TestSet set;
  // fs.certify() gives images in memory any name.
  if (!std::ranges::count(data_sources().names(), options.name)) {
    set.trouble =
        fmt::format("the table names its data set {:?}, which is not one that fedsmooth can load",
                    options.name);
    return set;
  }
  try {
    set.data = load_dataset(options, Split::kTest);
    set.sha256 = digest(set.data);
  } catch (const Error& error) {
    set.trouble = error.what();
  }
  return set;
}

std::map<int64_t, Array> pick_images(const RunRecord& run, const Dataset& data) {
  std::map<int64_t, Array> images;
  for (const GalleryGroup& group : choose_gallery(run.rows)) {
    for (const size_t i : group.rows) {
      const int64_t index = run.rows[i].index;
      if (index < data.size()) images[index] = data.images[index].clone();
    }
  }
  return images;
}

bool can_be_shown(const Dataset& data) {
  const int64_t channels = data.images.size(1);
  return channels == 1 || channels == 3;
}

}  // namespace

void load_gallery_images(std::vector<RunRecord>& runs, const std::string& root) {
  if (runs.size() > kMostGalleries) return;
  std::map<std::tuple<std::string, std::string, int64_t>, TestSet> sets;
  for (RunRecord& run : runs) {
    if (!run.certified()) continue;
    const std::optional<std::string>& sha256 = run.identity.data_sha256;
    if (!sha256 || (run.experiment.empty() && !run.identity.data)) {
      run.no_images = "the table does not say which data set it is about";
      continue;
    }
    const DataOptions options = data_of(run, root);
    auto& set = sets[{options.name, options.root, options.held_out}];
    if (set.sha256.empty() && set.trouble.empty()) set = load_test_set(options);
    if (!set.trouble.empty()) {
      run.no_images = set.trouble;
    } else if (set.sha256 != sha256) {
      run.no_images = fmt::format("the data set {} in {} is not the one that was certified",
                                  options.name, options.root);
    } else if (!can_be_shown(set.data)) {
      run.no_images = fmt::format("they have {} channels", set.data.images.size(1));
    } else {
      run.images = pick_images(run, set.data);
    }
  }
}

}  // namespace fedsmooth::jobs
