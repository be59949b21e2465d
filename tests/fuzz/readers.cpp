#include "tests/fuzz/readers.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/config/figure_list.h"
#include "fedsmooth/config/superclasses.h"
#include "fedsmooth/config/sweep.h"
#include "fedsmooth/federated/clients/partition.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/model/network_json.h"
#include "fedsmooth/model/safetensors.h"
#include "fedsmooth/records/attack_identity.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/clients.h"
#include "fedsmooth/records/conformal_file.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/records/published.h"
#include "fedsmooth/records/rounds.h"
#include "fedsmooth/report/attacked.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

using Strings = std::vector<std::string>;

// Reading back what was accepted must work; a refusal here is not an answer to bad input.
template <typename Function>
void must_work(Function read_back) {
  try {
    read_back();
  } catch (const Error& error) {
    throw std::logic_error(std::string("accepted, but cannot be read back: ") + error.what());
  }
}

constexpr const char* kEveryKind = R"([
  {"kind": "conv", "name": "conv", "outputs": 4, "kernel": 3, "padding": 1, "bias": false},
  {"kind": "batch-norm", "name": "bn"},
  {"kind": "relu"},
  {"kind": "residual", "body": [{"kind": "conv", "outputs": 6, "kernel": 1, "stride": 2}],
   "shortcut": [{"kind": "conv", "outputs": 6, "kernel": 2, "stride": 2}]},
  {"kind": "max-pool", "kernel": 2},
  {"kind": "dropout", "drop_rate": 0.5},
  {"kind": "avg-pool"},
  {"kind": "linear", "name": "1", "outputs": 3}])";

ModelOptions layer_options() {
  return {"layers",
          {0.5, 0.5, 0.5},
          {0.25, 0.25, 0.25},
          layers_from_json(json::parse(kEveryKind), "layers")};
}

constexpr ImageKind kImages = {{3, 8, 8}, 3};

Network network_of_every_kind() {
  return build_network(layer_options(), kImages.input, kImages.classes);
}

Strings model_seeds() {
  const Network network = network_of_every_kind();
  const Model model = {network, initial_weights(network, Key{1}), 0.25, {"a", "b", "c"}};
  const std::string described = format_model(model);
  Safetensors state_dict = parse_safetensors(described, "described");
  state_dict.metadata.clear();
  return {described, format_safetensors(state_dict)};
}

void read_model(const std::string& bytes) {
  const Model model = parse_model(bytes, "m.safetensors", layer_options(), &kImages);
  must_work([&] { parse_model(format_model(model), "m.safetensors", {}, nullptr); });
}

Strings network_seeds() {
  Strings seeds = {to_json(network_of_every_kind()).dump()};
  for (const char* name : {"small", "resnet20"}) {
    seeds.push_back(to_json(build_network({name, {0.5}, {0.25}}, {1, 32, 32}, 10)).dump());
  }
  return seeds;
}

void read_network(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Network network = network_from_json(object, "network");
  must_work([&] { network_from_json(to_json(network), "network"); });
}

Strings experiment_seeds() {
  Experiment experiment;
  experiment.model = layer_options();
  experiment.data.root = "a \"quoted\" folder";
  return {format_experiment({}), format_experiment(experiment), R"(seed = "random"
data = { name = "shapes" }
certify.n = 1_000
certify.alpha = 1e-3
[[model.layers]]
kind = "linear"
outputs = 0xa
)"};
}

Strings sweep_seeds() {
  return {"seed = 1\n[sweep]\n\"smoothing.sigma\" = [0.12, 0.5]\ntrain.method = ['standard']\n"};
}

void read_sweep_text(const std::string& text) { expand(parse_sweep(text, "e.toml", "e")); }

Strings figure_seeds() {
  return {"[[figure]]\nname = 'a.b'\ncaption = \"c\"\npanels = [{title = 't', runs = 'a-*-b'}]\n"};
}

void read_figure_text(const std::string& text) { parse_figures(text, "f.toml"); }

void read_experiment_text(const std::string& text) {
  const Experiment experiment = parse_experiment(text, "e.toml");
  must_work([&] { parse_experiment(format_experiment(experiment), "e.toml"); });
}

// `gaps` of several groups; empty: one network.
std::string certificate_seed(const std::string& subject, const Gaps& gaps = {}) {
  std::string file = certificate_header();
  for (int64_t i = 0; i < 5; ++i) {
    CertificateRow row = {.index = i * 20,
                          .label = i % 2,
                          .seconds = 0.25,
                          .n0 = 100,
                          .alpha = 0.001,
                          .sigma = 0.25,
                          .seed = 7,
                          .base = "cpu/fp32"};
    Counts counts = {.selected = 1, .n = 1000, .top = 500 + 100 * i, .runner_up = 20};
    const int64_t answered = gaps.empty() ? counts.top : copies_safe_from(gaps, 0);
    counts.votes = {{0, 20}, {1, answered}, {12, 5}};
    counts.selection = {{1, 90}, {3, 9}};
    if (!gaps.empty()) {
      row.malicious = 1;
      counts.top = copies_safe_from(gaps, 1);
      counts.gaps = gaps;
    }
    row.certificate =
        certificate_from_counts(counts, row.sigma, row.alpha, RadiusKind::kOneSided, kFloatNoise);
    row.noise = &kFloatNoise;
    row.subject = subject;
    file += format_row(row);
  }
  return file;
}

Strings certificate_seeds() {
  return {certificate_seed(""), certificate_seed("0123456789abcdef"),
          certificate_seed("", {20, 0, 300, 0, 600, 0, 80})};
}

void read_certificate_text(const std::string& text) {
  const std::vector<CertificateRow> rows = parse_certificates(text, "c.tsv");
  std::string file = certificate_header();
  for (const CertificateRow& row : rows) file += format_row(row);
  must_work([&] { parse_certificates(file, "c.tsv"); });
  for (const CertificateRow& row : rows) {
    if (row.malicious && row.rule != VoteRule::kRadii) must_work([&] { against(row, 0); });
  }
}

Strings published_seeds() {
  return {
      "idx\tlabel\tpredict\tradius\tcorrect\ttime\n0\t3\t3\t0.625\t1\t0:00:03.686402\n"
      "20\t8\t-1\t0.0\t0\t0:00:03\n40\t8\t1\t2.5e-05\t0\t1:00:03.000001\n"};
}

// What is accepted has numbers that every figure and table can take.
void read_published_text(const std::string& text) {
  if (!is_published(text)) return;
  for (const CertificateRow& row : parse_published(text, "p.tsv")) {
    if (!(row.certificate.radius >= 0 && std::isfinite(row.certificate.radius))) {
      throw std::logic_error("a radius that is none");
    }
  }
}

Strings sidecar_seeds() {
  return {
      R"({"identity": {"model_sha256": "abc", "n0": 100, "n": 1000, "alpha": 0.001,
  "sigma": 0.25, "seed": 7, "base": "cpu/fp32", "radius": "one-sided", "only_correct": false,
  "noise_bank": false, "noise": "float-2", "images": 5, "shard": "1/1", "held_out": 3},
  "classes": ["a", "b"], "provenance": {"version": "0.1.0"}})",
      R"({"identity": {"members": ["a", "b"], "noise": "float-2", "model_sha256": ")" +
          digest_members({"a", "b"}) + R"("}, "members": ["a.pt", "b.pt"]})",
      R"({"identity": {"groups": 5, "malicious": 1, "seed_given": false,
  "members": ["a", "b", "b", "c", "d"], "noise": "float-2", "model_sha256": ")" +
          digest_groups({"a", "b", "b", "c", "d"}) + R"("}})"};
}

// The rows of the seed table, with other JSONs beside them.
void read_sidecar_text(const std::string& text) {
  const auto identity =
      CertificateIdentity::from_json(parse_sidecar(text, "c.tsv")["identity"], "c.json");
  must_work([&] {
    const auto again = CertificateIdentity::from_json(identity.to_json(), "c.json");
    if (!identity.difference(again).empty()) throw std::logic_error("another identity");
  });
  // The first table is of one network, the last of several groups.
  const Strings tables = certificate_seeds();
  const std::string& table = identity.malicious ? tables.back() : tables.front();
  check_identity(parse_certificates(table, "c.tsv"), identity, "c.tsv");
}

Strings partition_seeds() { return {"0\t3\n1\t0\n0\t7\n2\t3\n2\t19\n"}; }

void read_partition_text(const std::string& text) { parse_partition(text, "p.tsv", 20); }

Strings round_seeds() {
  return {round_header() + format_round({1, 2.3, 0.5, 0.9, 1, 0.1, 0.02, 1, 3.5}) +
          format_round({2, 2.2})};
}

void read_round_text(const std::string& text) {
  std::string file = round_header();
  for (const RoundRow& row : parse_rounds(text, "r.tsv")) file += format_round(row);
  must_work([&] { parse_rounds(file, "r.tsv"); });
}

Strings client_seeds() { return {format_clients({{0, {3, 0, 2}}, {10, {0, 5, 1}}})}; }

void read_client_text(const std::string& text) {
  const std::vector<ClientRow> rows = parse_clients(text, "c.tsv");
  must_work([&] { parse_clients(format_clients(rows), "c.tsv"); });
}

Strings attack_seeds() {
  return {attack_header() + format_attack({0, 3, 0, 3, 0}) +
          format_attack({0, 3, 0.25, 1, 0.2499})};
}

void read_attack_text(const std::string& text) {
  const std::vector<AttackRow> rows = parse_attacks(text, "a.tsv");
  std::string file = attack_header();
  for (const AttackRow& row : rows) file += format_attack(row);
  must_work([&] { parse_attacks(file, "a.tsv"); });
  if (!rows.empty()) must_work([&] { attacked_accuracy(rows); });
}

Strings attack_sidecar_seeds() {
  return {
      R"({"identity": {"model_sha256": "abc", "sigma": 0.25, "seed": 7, "base": "cpu/fp32", "n": 100,
  "epsilons": [0, 0.5], "attack.estimator": "stochastic", "attack.steps": 10, "attack.normalize": true,
  "attack.step_size": "auto", "smoothing.m": 32, "certify.noise": "float"}, "table_sha256": "d"})"};
}

void read_attack_sidecar_text(const std::string& text) {
  const auto identity =
      AttackIdentity::from_json(parse_sidecar(text, "a.tsv")["identity"], "a.json");
  must_work([&] {
    const auto again = AttackIdentity::from_json(identity.to_json(), "a.json");
    if (!identity.difference(again).empty()) throw std::logic_error("another identity");
  });
}

Strings superclass_seeds() { return {"animals = ['bird', 'cat']\nothers = [\"3\"]\n"}; }

void read_superclass_text(const std::string& text) { parse_superclasses(text, "s.toml"); }

Strings conformal_seeds() {
  return {R"({"fedsmooth": "conformal sets", "noise": "float-2", "epsilon": 0.25, "coverage": 0.9,
  "quantile": 3.5, "subject": {"model_sha256": "m", "fingerprint": "f", "sigma": 0.25, "images": 100,
  "seed": 7, "base": "cpu"}})"};
}

void read_conformal_text(const std::string& text) {
  const ConformalCalibration c = parse_conformal(text, "c.json");
  if (!(c.quantile >= 0 && std::isfinite(c.quantile) && *c.subject.sigma > 0)) {
    throw std::logic_error("a threshold that is none");
  }
}

}  // namespace

std::vector<Reader> readers() {
  std::vector<Reader> all = {
      {"parse_model", model_seeds, mutate_safetensors, read_model},
      {"network_from_json", network_seeds, mutate_text, read_network},
      {"parse_experiment", experiment_seeds, mutate_text, read_experiment_text},
      {"parse_sweep", sweep_seeds, mutate_text, read_sweep_text},
      {"parse_figures", figure_seeds, mutate_text, read_figure_text},
      {"parse_certificates", certificate_seeds, mutate_text, read_certificate_text},
      {"parse_published", published_seeds, mutate_text, read_published_text},
      {"parse_sidecar", sidecar_seeds, mutate_text, read_sidecar_text},
      {"parse_partition", partition_seeds, mutate_text, read_partition_text},
      {"parse_rounds", round_seeds, mutate_text, read_round_text},
      {"parse_clients", client_seeds, mutate_text, read_client_text},
      {"parse_attacks", attack_seeds, mutate_text, read_attack_text},
      {"parse_attack_sidecar", attack_sidecar_seeds, mutate_text, read_attack_sidecar_text},
      {"parse_superclasses", superclass_seeds, mutate_text, read_superclass_text},
      {"parse_conformal", conformal_seeds, mutate_text, read_conformal_text}};
  for (Reader& reader : data_readers()) all.push_back(std::move(reader));
  return all;
}

}  // namespace fedsmooth
