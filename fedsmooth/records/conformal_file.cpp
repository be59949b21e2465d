#include "fedsmooth/records/conformal_file.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/records/identity_fields.h"
#include "fedsmooth/records/table_file.h"
#include "fedsmooth/smoothing/conformal.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

constexpr const char* kKind = "conformal sets";

template <typename T>
T require(const std::optional<T>& value, const char* key, const std::string& name) {
  if (!value) throw Error("{}: has no {:?}", name, key);
  return *value;
}

// Reads the member "test"; none if there is none.
std::optional<SetsOnTestImages> find_test(const json& object, const std::string& name) {
  if (!object.contains("test")) return std::nullopt;
  const json& test = object["test"];
  if (!test.is_object()) throw Error("{}: \"test\" is not an object", name);
  refuse_unknown_members(test, {"images", "coverage", "mean_size", "empty"}, "\"test\"", name);
  const SetsOnTestImages sets{require(find_count(test, "images", name), "images", name),
                              require(find_number(test, "coverage", name), "coverage", name),
                              require(find_number(test, "mean_size", name), "mean_size", name),
                              require(find_count(test, "empty", name), "empty", name)};
  if (sets.images < 1 || !(sets.coverage >= 0 && sets.coverage <= 1) || !(sets.mean_size >= 0) ||
      sets.empty > sets.images) {
    throw Error("{}: \"test\" has numbers that no measurement has", name);
  }
  return sets;
}

}  // namespace

json to_json(const SetsOnTestImages& sets) {
  return {{"images", sets.images},
          {"coverage", sets.coverage},
          {"mean_size", sets.mean_size},
          {"empty", sets.empty}};
}

void write_conformal(const std::filesystem::path& file, const ConformalCalibration& c) {
  json object = {{"fedsmooth", kKind},
                 {"subject", c.subject.to_json()},
                 {"noise", c.noise->name},
                 {"epsilon", c.epsilon},
                 {"coverage", c.coverage},
                 {"quantile", c.quantile},
                 {"provenance", build_provenance()}};
  if (c.test) object["test"] = to_json(*c.test);
  write_file(file, dump_json_lines(object));
}

ConformalCalibration parse_conformal(std::string_view text, const std::string& name) {
  const json object = parse_json_object(text, name);
  if (find_string(object, "fedsmooth", name) != kKind || !object.contains("subject") ||
      !object["subject"].is_object()) {
    throw Error("{}: is not a file of conformal sets; fedsmooth conformal writes one", name);
  }
  refuse_unknown_members(
      object,
      {"fedsmooth", "subject", "noise", "epsilon", "coverage", "quantile", "test", "provenance"},
      "the file", name);
  ConformalCalibration c;
  c.subject = SubjectIdentity::from_json(object["subject"], name);
  const std::string noise = require(find_string(object, "noise", name), "noise", name);
  c.noise = find_law(noise);
  if (c.noise == nullptr || c.noise->draws_at == nullptr) {
    throw Error("{}: \"noise\" is {:?}, which this version does not draw", name,
                noise.substr(0, 40));
  }
  c.epsilon = require(find_number(object, "epsilon", name), "epsilon", name);
  c.coverage = require(find_number(object, "coverage", name), "coverage", name);
  c.quantile = require(find_number(object, "quantile", name), "quantile", name);
  c.test = find_test(object, name);
  require(c.subject.model_sha256, "model_sha256", name);
  require(c.subject.fingerprint, "fingerprint", name);
  const double sigma = require(c.subject.sigma, "sigma", name);
  const int64_t images = require(c.subject.images, "images", name);
  if (!(c.quantile >= 0)) {
    throw Error("{}: \"quantile\" is {}, which is negative", name, c.quantile);
  }
  double level = 0;
  try {
    level = conformal_level(c.coverage, c.epsilon, sigma, *c.noise);
  } catch (const Error& error) {
    throw Error("{}: {}", name, error.what());
  }
  if (images < 1 || images > kMaxVotes || conformal_rank(images, level) > images) {
    throw Error("{}: {} calibration images are too few; at least {} are needed", name, images,
                needed_images(level));
  }
  return c;
}

ConformalCalibration read_conformal(const std::filesystem::path& file) {
  return parse_conformal(read_file(file), file.string());
}

}  // namespace fedsmooth
