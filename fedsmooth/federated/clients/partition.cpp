#include "fedsmooth/federated/clients/partition.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/draws.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"

namespace fedsmooth {
namespace {

Stream client_stream(uint64_t seed, int64_t k) {
  return {make_key(seed, Purpose::kPartition), static_cast<uint32_t>(k)};
}

void append_chosen(const std::vector<int64_t>& from, int64_t count, Draws& draws,
                   std::vector<int64_t>& out) {
  for (const int64_t i : draws.choose(count, static_cast<int64_t>(from.size()))) {
    out.push_back(from[i]);
  }
}

// Whole numbers that add up to `total`, close to the proportions, none above its capacity.
std::vector<int64_t> apportion(const std::vector<double>& proportions, int64_t total,
                               const std::vector<int64_t>& capacity) {
  std::vector<int64_t> counts(proportions.size(), 0);
  double before = 0;
  int64_t given = 0;
  for (size_t c = 0; c < counts.size(); ++c) {
    before += proportions[c];
    const auto up_to = static_cast<int64_t>(std::llround(before * static_cast<double>(total)));
    counts[c] = std::min(up_to - given, capacity[c]);
    given = up_to;
  }
  // What a small class could not give comes from the others, largest room first.
  int64_t missing = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  while (missing > 0) {
    size_t roomiest = 0;
    for (size_t c = 1; c < counts.size(); ++c) {
      if (capacity[c] - counts[c] > capacity[roomiest] - counts[roomiest]) roomiest = c;
    }
    const int64_t taken = std::min(missing, capacity[roomiest] - counts[roomiest]);
    counts[roomiest] += taken;
    missing -= taken;
  }
  return counts;
}

}  // namespace

std::vector<std::vector<int64_t>> parse_partition(std::string_view text, const std::string& path,
                                                  int64_t images) {
  if (text.empty()) throw Error("{}: is empty; expected a line per client and image", path);
  // Every client has a line, so there are no more clients than lines.
  const int64_t most = std::count(text.begin(), text.end(), '\n');
  std::vector<std::vector<int64_t>> clients;
  const char *next = text.data(), *end = next + text.size();
  for (int64_t line = 1; next < end; ++line) {
    int64_t client = 0, image = 0;
    const auto first = std::from_chars(next, end, client);
    const bool tab = first.ec == std::errc() && first.ptr < end && *first.ptr == '\t';
    const auto second = tab ? std::from_chars(first.ptr + 1, end, image) : first;
    if (!tab || second.ec != std::errc() || second.ptr >= end || *second.ptr != '\n' ||
        client < 0 || image < 0 || image >= images) {
      throw Error("{}:{}: expected a client, a tab and an image from 0 to {}", path, line,
                  images - 1);
    }
    if (client >= most) {
      throw Error("{}:{}: client {}, but {} lines hold at most clients 0 to {}", path, line, client,
                  most, most - 1);
    }
    if (client >= static_cast<int64_t>(clients.size())) clients.resize(client + 1);
    clients[client].push_back(image);
    next = second.ptr + 1;
  }
  for (size_t k = 0; k < clients.size(); ++k) {
    if (clients[k].empty()) throw Error("{}: client {} has no images", path, k);
    std::vector<int64_t> sorted = clients[k];
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) throw Error("{}: client {} has image {} twice", path, k, *twice);
  }
  return clients;
}

Partition::Partition(const PartitionOptions& options, const std::vector<int64_t>& labels,
                     int64_t classes, uint64_t seed)
    : options_(options), seed_(seed), by_class_(classes) {
  const auto held = static_cast<int64_t>(labels.size());
  for (int64_t i = 0; i < held; ++i) by_class_.at(labels[i]).push_back(i);
  for (const auto& images : by_class_) all_.insert(all_.end(), images.begin(), images.end());

  const int64_t wanted = options_.samples_per_client;
  if (options_.kind == PartitionKind::kFile) {
    if (options_.file.empty()) throw Error("partition.file: is missing, and partition.kind=file");
    listed_ = parse_partition(read_file(options_.file), options_.file, held);
    options_.clients = static_cast<int64_t>(listed_.size());
  } else if (options_.kind == PartitionKind::kShards) {
    const int64_t slices = options_.clients * options_.shards;
    if (slices > held) throw Error("partition: {} shards of {} images", slices, held);
    shard_order_ = Draws({make_key(seed, Purpose::kPartition), 0, 1}).choose(slices, slices);
  } else if (options_.kind == PartitionKind::kWhole) {
    options_.clients = 1;
  } else if (wanted > held) {
    throw Error("partition.samples_per_client={}: there are {} images", wanted, held);
  } else if (options_.kind == PartitionKind::kMajorClass) {
    const auto major = static_cast<int64_t>(std::llround(options_.gamma * wanted));
    for (const auto& images : by_class_) {
      const auto size = static_cast<int64_t>(images.size());
      if (major > size || wanted - major > held - size) {
        throw Error(
            "partition.gamma={}: {} images of one class and {} of the others are wanted, "
            "there are {} and {}",
            options_.gamma, major, wanted - major, size, held - size);
      }
    }
  }
}

Partition::Partition(std::vector<std::vector<int64_t>> images, uint64_t seed)
    : options_{.kind = PartitionKind::kFile, .clients = std::ssize(images)},
      seed_(seed),
      listed_(std::move(images)) {
  std::vector<int64_t> present;
  for (int64_t k = 0; k < clients(); ++k) {
    if (!listed_[k].empty()) present.push_back(k);
  }
  if (std::ssize(present) < clients()) members_ = std::move(present);
}

void Partition::take_group(const GroupOptions& o) {
  const std::vector<int64_t> of_group = clients_of_group(o, clients(), seed_), all = members();
  std::vector<int64_t> both;
  std::ranges::set_intersection(of_group, all, std::back_inserter(both));
  members_ = both;
  group_ = o.number;
  if (both.empty()) {
    throw Error("groups.count={}: none of the {} clients is in group {}; use fewer groups", o.count,
                clients(), o.number);
  }
}

std::vector<int64_t> Partition::members() const {
  if (members_) return *members_;
  std::vector<int64_t> all(clients());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

int64_t Partition::count_members() const { return members_ ? std::ssize(*members_) : clients(); }

std::vector<int64_t> Partition::images(int64_t k) const {
  check(0 <= k && k < clients(), "Partition: client {} of {}", k, clients());
  switch (options_.kind) {
    case PartitionKind::kMajorClass:
      return major_class_images(k);
    case PartitionKind::kIid: {
      std::vector<int64_t> images;
      Draws draws(client_stream(seed_, k));
      append_chosen(all_, options_.samples_per_client, draws, images);
      return images;
    }
    case PartitionKind::kDirichlet:
      return dirichlet_images(k);
    case PartitionKind::kShards:
      return shard_images(k);
    case PartitionKind::kFile:
      return listed_[k];
    case PartitionKind::kWhole:
      return all_;
  }
  throw Bug("Partition: unknown kind");
}

std::vector<int64_t> Partition::major_class_images(int64_t k) const {
  Draws draws(client_stream(seed_, k));
  const int64_t major = draws.below(static_cast<int64_t>(by_class_.size()));
  const auto count = static_cast<int64_t>(
      std::llround(options_.gamma * static_cast<double>(options_.samples_per_client)));
  std::vector<int64_t> images;
  append_chosen(by_class_[major], count, draws, images);

  // all_ is sorted by class: the others are what lies before and after the major class.
  int64_t first = 0;
  for (int64_t c = 0; c < major; ++c) first += static_cast<int64_t>(by_class_[c].size());
  const auto size = static_cast<int64_t>(by_class_[major].size());
  const auto others = static_cast<int64_t>(all_.size()) - size;
  for (const int64_t i : draws.choose(options_.samples_per_client - count, others)) {
    images.push_back(all_[i < first ? i : i + size]);
  }
  return images;
}

std::vector<int64_t> Partition::dirichlet_images(int64_t k) const {
  Draws draws(client_stream(seed_, k));
  std::vector<double> proportions;
  std::vector<int64_t> capacity;
  for (const auto& images : by_class_) {
    proportions.push_back(std::max(draws.gamma(options_.alpha), 1e-300));
    capacity.push_back(static_cast<int64_t>(images.size()));
  }
  const double sum = std::accumulate(proportions.begin(), proportions.end(), 0.0);
  for (double& p : proportions) p /= sum;
  const auto counts = apportion(proportions, options_.samples_per_client, capacity);
  std::vector<int64_t> images;
  for (size_t c = 0; c < counts.size(); ++c) append_chosen(by_class_[c], counts[c], draws, images);
  return images;
}

std::vector<int64_t> Partition::shard_images(int64_t k) const {
  const auto slices = static_cast<int64_t>(shard_order_.size());
  const auto held = static_cast<int64_t>(all_.size());
  std::vector<int64_t> images;
  for (int64_t s = 0; s < options_.shards; ++s) {
    const int64_t slice = shard_order_[k * options_.shards + s];
    images.insert(images.end(), all_.begin() + slice * held / slices,
                  all_.begin() + (slice + 1) * held / slices);
  }
  return images;
}

std::vector<int64_t> count_labels(const std::vector<int64_t>& images,
                                  const std::vector<int64_t>& labels, int64_t classes) {
  std::vector<int64_t> counts(classes, 0);
  for (const int64_t i : images) ++counts[labels[i]];
  return counts;
}

}  // namespace fedsmooth
