#include "fedsmooth/jobs/merge.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

Shard shard_of(const CertificateIdentity& identity, const fs::path& table) {
  if (!identity.shard) throw Error("{}: is not a shard", table.string());
  const auto shard = parse_shard(*identity.shard);
  if (!shard) {
    throw Error("{}: its shard {:?} is not I/K", table.string(), identity.shard->substr(0, 40));
  }
  return *shard;
}

// Throws an Error if two shards have the same image, which would be counted twice.
void check_once(const std::vector<CertificateRow>& rows) {
  const auto twice = std::adjacent_find(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.index == b.index; });
  if (twice != rows.end()) throw Error("merge: image {} is in two shards", twice->index);
}

void check_all_shards(const std::map<int64_t, Shard>& shards) {
  const int64_t count = shards.begin()->second.count;
  for (const auto& [number, shard] : shards) {
    if (shard.count != count) {
      throw Error("merge: shards of {} and of {} do not go together", count, shard.count);
    }
  }
  for (int64_t i = 1; i <= count; ++i) {
    if (!shards.contains(i)) throw Error("merge: shard {}/{} is missing", i, count);
  }
}

// Throws an Error if rows are missing, as in an interrupted shard.
void check_complete(const std::vector<CertificateRow>& rows, const CertificateIdentity& identity) {
  const int64_t planned = identity.images.value_or(0);
  if (static_cast<int64_t>(rows.size()) != planned) {
    throw Error("merge: {} rows of {}; complete the shards first", rows.size(), planned);
  }
}

}  // namespace

void merge(const std::vector<std::string>& paths, const fs::path& out) {
  if (paths.empty()) throw Error("merge: no tables");
  if (fs::exists(out)) throw Error("{}: exists; choose another --out", out.string());
  std::vector<CertificateRow> rows;
  std::map<int64_t, Shard> shards;
  std::optional<CertificateIdentity> first;
  for (const std::string& path : paths) {
    const fs::path table = find_table(path);
    refuse_published(table);
    CertificateIdentity identity = read_identity(table);
    const Shard shard = shard_of(identity, table);
    identity.shard = "1/1";
    if (!first) first = identity;
    const std::string difference = identity.difference(*first);
    if (!difference.empty()) {
      throw Error("{}: does not belong to {}: they differ in {}", table.string(), paths[0],
                  difference);
    }
    if (!shards.emplace(shard.number, shard).second) {
      throw Error("{}: shard {}/{} is there twice", table.string(), shard.number, shard.count);
    }
    for (CertificateRow& row : read_certificates(table)) rows.push_back(std::move(row));
  }
  check_all_shards(shards);
  check_complete(rows, *first);
  std::sort(rows.begin(), rows.end(),
            [](const CertificateRow& a, const CertificateRow& b) { return a.index < b.index; });
  check_once(rows);
  write_certificates(out, rows, *first, read_sidecar(find_table(paths[0])));
}

}  // namespace fedsmooth::jobs
