#include "fedsmooth/jobs/certification/ensemble_under_test.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/certification/groups_under_test.h"
#include "fedsmooth/records/run.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

void check_class_names(const ModelUnderTest& a, const ModelUnderTest& b) {
  if (!a.model || !b.model) return;
  const std::vector<std::string>&here = a.model->class_names, &there = b.model->class_names;
  for (size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    if (here[i] == there[i]) continue;
    throw Error("{}: class {} is {:?}, in {} it is {:?}; models must agree to be certified as one",
                b.model_path.string(), i, there[i].substr(0, 40), a.model_path.string(),
                here[i].substr(0, 40));
  }
}

void check_fits(const ModelUnderTest& a, const ModelUnderTest& b) {
  if (a.sha256 == b.sha256) {
    throw Error("--with={}: is the model in {}; a member is given once", b.model_path.string(),
                a.model_path.string());
  }
  check_alike(a, b);
}

// All models, the one of `subject.path` first, each on the CPU.
std::vector<ModelUnderTest> load_members(const Subject& subject, const Overrides& overrides,
                                         const Dataset* data, const Shape& input) {
  std::vector<ModelUnderTest> members;
  members.push_back(load_model_under_test(subject.path, overrides, data, input, "cpu"));
  // Other models are used as the first one is: a file may state neither its data nor its noise.
  Overrides alike = overrides;
  alike.emplace_back("data.name", members[0].experiment.data.name);
  alike.emplace_back("certify.sigma", fmt::format("{}", members[0].sigma));
  for (const std::string& path : subject.with) {
    ModelUnderTest member = load_model_under_test(path, alike, data, input, "cpu");
    for (const ModelUnderTest& other : members) check_fits(other, member);
    members.push_back(std::move(member));
  }
  return members;
}

// The mean of the logits, which stands in for the majority of groups, too: that one has no
// gradients.
std::function<std::function<DifferentiableClassifier()>()> gradients_of(
    const std::vector<ModelUnderTest>& loaded) {
  return [loaded] {
    std::vector<std::function<DifferentiableClassifier()>> makers;
    for (const ModelUnderTest& one : loaded) makers.push_back(one.load_gradients());
    return [makers] {
      std::vector<DifferentiableClassifier> members;
      for (const auto& make : makers) members.push_back(make());
      return mean_with_gradients(std::move(members));
    };
  };
}

ModelUnderTest mean_of(std::vector<ModelUnderTest> loaded, const std::string& device) {
  JoinedModels all = join(std::move(loaded));
  ModelUnderTest& mean = all.subject;
  mean.f = choose_ensemble(device, all.members, *mean.experiment.certify.noise);
  mean.sha256 = digest_members(all.sha256s);
  return mean;
}

}  // namespace

JoinedModels join(std::vector<ModelUnderTest> loaded) {
  JoinedModels all{loaded.front(), {}, {}};
  std::stable_sort(loaded.begin(), loaded.end(),
                   [](const auto& a, const auto& b) { return a.sha256 < b.sha256; });
  for (const ModelUnderTest& one : loaded) {
    all.members.push_back({one.model_path.string(), one.model, one.f});
    all.sha256s.push_back(one.sha256);
    all.subject.members.push_back({one.model_path, one.sha256});
    if (all.subject.class_names.empty()) all.subject.class_names = one.class_names;
  }
  all.subject.model = nullptr;
  all.subject.load_gradients = gradients_of(loaded);
  return all;
}

// The shape of images was compared with the data's when they were loaded.
void check_alike(const ModelUnderTest& a, const ModelUnderTest& b) {
  const std::string here = a.model_path.string(), there = b.model_path.string();
  if (a.f.classes != b.f.classes) {
    throw Error("{}: has {} classes, {} has {}; models must agree to be certified as one", there,
                b.f.classes, here, a.f.classes);
  }
  check_class_names(a, b);
  const double trained = a.model ? a.model->sigma : 0, other = b.model ? b.model->sigma : 0;
  if (trained > 0 && other > 0 && trained != other) {
    throw Error("{}: was trained for sigma {}, {} for {}; models must agree to be certified as one",
                there, other, here, trained);
  }
}

ModelUnderTest load_under_test(const Subject& subject, const Overrides& overrides,
                               const Dataset* data, const Shape& input, const std::string& device) {
  if (subject.with.empty() && is_run_of_groups(subject.path)) {
    return load_groups(subject.path, overrides, data, input, device);
  }
  if (subject.with.empty()) {
    return load_model_under_test(subject.path, overrides, data, input, device);
  }
  return mean_of(load_members(subject, overrides, data, input), device);
}

void check_place_of_table(const CertifyArguments& a) {
  if (a.with.empty()) return;
  if (a.out.empty()) {
    throw Error("--with: give --out, the table to write; {} is for the certificates of {} alone",
                table_path(a.path, "certificates").string(), a.path);
  }
  const fs::path out = fs::absolute(a.out);
  if (out.filename() == "certificates.tsv" && trained_sha256(out.parent_path())) {
    throw Error("--out={}: is for the certificates of this run's own model; choose another name",
                a.out);
  }
}

nlohmann::json describe_members(const ModelUnderTest& subject) {
  nlohmann::json paths = nlohmann::json::array();
  for (const MemberFile& member : subject.members) paths.push_back(member.path.string());
  return paths;
}

Subject stated_members(const fs::path& table, const nlohmann::json& sidecar) {
  const nlohmann::json paths = sidecar.value("members", nlohmann::json());
  const auto is_text = [](const nlohmann::json& path) { return path.is_string(); };
  if (!paths.is_array() || paths.empty() || !std::all_of(paths.begin(), paths.end(), is_text)) {
    throw Error("{}: does not say where its members are; give them by --model and --with",
                table.string());
  }
  Subject subject;
  for (const std::string path : paths) {
    if (!fs::exists(path)) {
      throw Error("{}: its member {} is not here; give all of them by --model and --with",
                  table.string(), path);
    }
    if (subject.path.empty()) {
      subject.path = path;
    } else {
      subject.with.push_back(path);
    }
  }
  return subject;
}

void check_is_about(const SubjectIdentity& identity, const ModelUnderTest& subject,
                    const fs::path& table) {
  const std::vector<std::string> members = identity.members.value_or(std::vector<std::string>());
  if (members.size() == subject.members.size()) {
    for (const MemberFile& member : subject.members) {
      if (std::find(members.begin(), members.end(), member.sha256) != members.end()) continue;
      throw Error("{}: {}, with SHA-256 {}..., is not one of its members", table.string(),
                  member.path.string(), member.sha256.substr(0, 12));
    }
    return;
  }
  if (members.empty()) {
    throw Error("{}: is about one model; leave out --with", table.string());
  }
  throw Error("{}: is about {} models as one, {} given; give all of them by --model and --with",
              table.string(), members.size(), std::max<size_t>(1, subject.members.size()));
}

}  // namespace fedsmooth::jobs
