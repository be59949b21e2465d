// Partitions: which training images a client holds, as a pure function of (seed, client), so that a
// million clients need no more memory than a thousand. Clients may share images; no client has an
// image twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/federated/clients/groups.h"

namespace fedsmooth {

enum class PartitionKind {
  kMajorClass,  // the paper's: a share gamma of one random class, the rest from the others
  kIid,         // from all classes alike
  kDirichlet,   // class proportions drawn from Dirichlet(alpha) by each client
  kShards,      // `shards` slices of the images sorted by class; clients do not overlap
  kFile,        // a TSV of client and image index
  kWhole,       // one client that holds everything: centralized training
};

struct PartitionOptions {
  PartitionKind kind = PartitionKind::kMajorClass;
  int64_t clients = 1000;
  int64_t samples_per_client = 500;
  double gamma = 0.1;  // major-class: share of the major class; 0.1 is homogeneous for 10 classes
  double alpha = 0.5;  // dirichlet: concentration
  int64_t shards = 2;  // shards: slices per client
  std::string file;    // file: path of the TSV
};

class Partition {
 public:
  /// `labels` are those of all images. Throws an Error for a partition that cannot be drawn, such
  /// as one with more samples per client than there are images.
  Partition(const PartitionOptions& options, const std::vector<int64_t>& labels, int64_t classes,
            uint64_t seed);

  /// Makes the partition in which client k holds images[k]. A client without images is not trained.
  explicit Partition(std::vector<std::vector<int64_t>> images, uint64_t seed = 0);

  int64_t clients() const { return options_.clients; }

  /// Restricts training to the clients of one group, which keep their numbers. Throws an Error if
  /// the group has none.
  void take_group(const GroupOptions& options);
  /// The group's number; 0: all clients are trained.
  int64_t group() const { return group_; }
  /// Returns the clients that are trained, in ascending order.
  std::vector<int64_t> members() const;
  int64_t count_members() const;

  /// Images of client k, in the order in which they were drawn.
  std::vector<int64_t> images(int64_t k) const;

 private:
  std::vector<int64_t> major_class_images(int64_t k) const;
  std::vector<int64_t> dirichlet_images(int64_t k) const;
  std::vector<int64_t> shard_images(int64_t k) const;

  PartitionOptions options_;
  uint64_t seed_;
  std::vector<std::vector<int64_t>> by_class_;
  std::vector<int64_t> all_;                  // sorted by class
  std::vector<int64_t> shard_order_;          // kShards
  std::vector<std::vector<int64_t>> listed_;  // kFile
  int64_t group_ = 0;
  std::optional<std::vector<int64_t>> members_;  // none: all clients
};

/// Reads a TSV of client and image, and returns the images of each client. Throws an Error that
/// begins with `name` for a client without images, an image number of `images` or more, or an image
/// that a client has twice.
std::vector<std::vector<int64_t>> parse_partition(std::string_view text, const std::string& name,
                                                  int64_t images);

/// Returns how many of `images` are of each class.
std::vector<int64_t> count_labels(const std::vector<int64_t>& images,
                                  const std::vector<int64_t>& labels, int64_t classes);

}  // namespace fedsmooth
