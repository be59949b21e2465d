// fedsmooth merge F.tsv... --out G.tsv: joins the shards of one certification.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/tables.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/report/certificate_file.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The identity without the shard, which is taken out into `shard`.
json take_shard(json identity, std::string& shard, const fs::path& table) {
  if (!identity.contains("shard") || !identity["shard"].is_string()) {
    throw Error("{}: is not a shard", table.string());
  }
  shard = identity["shard"].get<std::string>();
  identity["shard"] = "1/1";
  return identity;
}

void check_all_shards(const std::set<std::string>& shards) {
  const std::string of = shards.begin()->substr(shards.begin()->find('/'));
  for (const std::string& shard : shards) {
    if (shard.substr(shard.find('/')) != of) {
      throw Error("merge: shards {} and {} are of different splits", *shards.begin(), shard);
    }
  }
  for (size_t i = 1; i <= shards.size(); ++i) {
    const std::string wanted = fmt::format("{}{}", i, of);
    if (shards.count(wanted) == 0) throw Error("merge: shard {} is missing", wanted);
  }
  if (of != fmt::format("/{}", shards.size())) {
    throw Error("merge: shard {}{} is missing", shards.size() + 1, of);
  }
}

// Every planned image once: an interrupted shard has fewer rows.
void check_complete(const std::vector<CertificateRow>& rows, const json& identity) {
  const int64_t planned = identity.value("images", int64_t{0});
  if (static_cast<int64_t>(rows.size()) != planned) {
    throw Error("merge: {} rows of {}; finish the shards with certify --resume", rows.size(),
                planned);
  }
}

int run_merge(const std::vector<std::string>& paths, const fs::path& out, const Common& common) {
  if (fs::exists(out)) throw Error("{}: exists; choose another --out", out.string());
  std::vector<CertificateRow> rows;
  std::set<std::string> shards;
  json first;
  for (const std::string& path : paths) {
    const fs::path table = find_table(path);
    json sidecar = read_sidecar(table);
    std::string shard;
    sidecar["identity"] = take_shard(sidecar["identity"], shard, table);
    if (first.is_null()) first = sidecar;
    if (sidecar["identity"] != first["identity"]) {
      throw Error("{}: does not belong to {}: they differ in {}", table.string(), paths[0],
                  identity_difference(first["identity"], sidecar["identity"]));
    }
    if (!shards.insert(shard).second) {
      throw Error("{}: shard {} is there twice", table.string(), shard);
    }
    for (CertificateRow& row : read_certificates(table)) rows.push_back(std::move(row));
  }
  check_all_shards(shards);
  check_complete(rows, first["identity"]);
  std::sort(rows.begin(), rows.end(),
            [](const CertificateRow& a, const CertificateRow& b) { return a.index < b.index; });
  write_certificates(out, rows, first);
  print_summary(out, common);
  return 0;
}

}  // namespace

void add_merge(CLI::App& app, Common& common) {
  struct Arguments {
    std::vector<std::string> tables;
    std::string out;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "merge", "join the shards of one certification",
            "  fedsmooth merge part1.tsv part2.tsv --out all.tsv");
  c.arguments("tables", a->tables, "the shards' tables");
  c.option("out", a->out, "table to write");
  c.on_run([a, &common] {
    if (a->out.empty()) throw Error("merge: needs --out");
    return run_merge(a->tables, a->out, common);
  });
}

}  // namespace fedsmooth::cli
