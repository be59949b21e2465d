// fedsmooth verify CERTIFICATES.tsv [--images K]: do the rows follow from their counts, and are the
// counts plausible?
#include "fedsmooth/jobs/verify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"

namespace fedsmooth::cli {
namespace {

using nlohmann::json;

json verification_json(const jobs::Verification& found) {
  json images = json::array();
  for (const jobs::RedrawnImage& image : found.images) {
    images.push_back({{"idx", image.index},
                      {"selected", image.selected},
                      {"stored", {{"count_top", image.stored_top}, {"n", image.stored_n}}},
                      {"drawn_anew", {{"count_top", image.top}, {"n", image.n}}},
                      {"p_value", image.p_value}});
  }
  return {{"certificates", found.table.string()},
          {"rows", found.rows},
          {"seed", seed_json(found.seed)},
          {"drawn_anew", images},
          {"p_value", found.p_value},
          {"plausible", found.plausible()}};
}

void print_verification(const jobs::Verification& found) {
  fmt::print("{}\n  {} rows: each radius follows from its counts\n", found.table.string(),
             found.rows);
  if (found.images.empty()) {
    fmt::print("  no votes were drawn anew\n");
    return;
  }
  fmt::print("  {} of them drawn anew, with seed {}:\n", found.images.size(), found.seed);
  constexpr std::string_view kLine = "  {:>8}{:>8}{:>24}{:>24}{:>12}\n";
  fmt::print(kLine, "image", "class", "votes in the table", "drawn anew", "p-value");
  const auto votes = [](int64_t top, int64_t n) { return fmt::format("{} of {}", top, n); };
  for (const jobs::RedrawnImage& image : found.images) {
    fmt::print(kLine, image.index, image.selected, votes(image.stored_top, image.stored_n),
               votes(image.top, image.n), fmt::format("{:.3g}", image.p_value));
  }
  fmt::print("  {} times the smallest p-value: {:.3g}\n", found.images.size(), found.p_value);
  if (found.plausible()) fmt::print("  nothing speaks against this table\n");
}

}  // namespace

void add_verify(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<jobs::VerifyArguments>();
  Command c(app, common, "verify", "check a table: recompute its rows, draw some of them anew",
            "  fedsmooth verify runs/quickstart/smoothadv\n"
            "  fedsmooth verify theirs.tsv --model model.safetensors --data.root=data --images 50\n"
            "  fedsmooth verify theirs.tsv --images 0   # needs neither model nor data");
  c.argument("certificates", a->table, "table of certificates, or its run folder");
  c.option("images", a->images, "images to draw anew, chosen at random; 0: none");
  c.option("model", a->model, "run folder or model; the one that the table names if left out");
  c.options("with", a->with, "the other models of a table about several; with --model");
  c.option("n", a->n, "votes to draw for each; 0: as many as the table has");
  c.on_run([a, &common](const Overrides& overrides) {
    const jobs::Verification found = jobs::verify(*a, overrides, common.context);
    if (common.json) {
      fmt::print("{}\n", dump_json(verification_json(found)));
    } else {
      print_verification(found);
    }
    if (!found.plausible()) {
      throw Error("{}: is implausible: counts as high as its own come with probability {:.2g}",
                  found.table.string(), found.p_value);
    }
    return 0;
  });
}

}  // namespace fedsmooth::cli
