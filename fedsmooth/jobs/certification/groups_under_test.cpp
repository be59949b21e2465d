#include "fedsmooth/jobs/certification/groups_under_test.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/ensembles.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

ModelUnderTest join(const fs::path& run, std::vector<ModelUnderTest> loaded,
                    const std::string& device) {
  ModelUnderTest joined = loaded.front();
  joined.model_path = run;
  std::stable_sort(loaded.begin(), loaded.end(),
                   [](const auto& a, const auto& b) { return a.sha256 < b.sha256; });
  std::vector<EnsembleMember> members;
  std::vector<std::string> sha256s;
  for (const ModelUnderTest& one : loaded) {
    members.push_back({one.model_path.string(), one.model, one.f});
    joined.members.push_back({one.model_path, one.sha256});
    sha256s.push_back(one.sha256);
  }
  joined.f = choose_groups(device, members);
  joined.sha256 = digest_groups(sha256s);
  joined.model = nullptr;
  joined.load_gradients = [run]() -> std::function<DifferentiableClassifier()> {
    throw Error("{}: is a run of several groups, whose majority has no gradients", run.string());
  };
  return joined;
}

}  // namespace

ModelUnderTest load_groups(const fs::path& run, const Overrides& overrides, const Dataset* data,
                           const Shape& input, const std::string& device) {
  const Experiment experiment = experiment_of_model(run, overrides);
  std::vector<ModelUnderTest> groups;
  for (int64_t g = 1; g <= experiment.groups.count; ++g) {
    groups.push_back(load_model_under_test(group_folder(run, g), overrides, data, input, "cpu"));
    check_alike(groups.front(), groups.back());
  }
  ModelUnderTest joined = join(run, std::move(groups), device);
  joined.experiment = experiment;
  if (trained_sha256(run).value_or(joined.sha256) != joined.sha256) {
    throw Error("{}: its groups' models are not those that it trained; provenance.json has others",
                run.string());
  }
  return joined;
}

void identify_groups(const ModelUnderTest& subject, CertificateIdentity& identity) {
  const CertificationOptions& o = subject.experiment.certify;
  identity.groups = subject.f.groups;
  identity.malicious = o.malicious;
  identity.seed_given = o.seed.has_value();
  identity.seed = o.seed ? *o.seed : drawn_certificate_seed(subject.model_path);
}

}  // namespace fedsmooth::jobs
