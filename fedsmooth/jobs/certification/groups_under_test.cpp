#include "fedsmooth/jobs/certification/groups_under_test.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/ensembles.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::jobs {

namespace fs = std::filesystem;

ModelUnderTest load_groups(const fs::path& run, const Overrides& overrides, const Dataset* data,
                           const Shape& input, const std::string& device) {
  const Experiment experiment = experiment_of_model(run, overrides);
  std::vector<ModelUnderTest> groups;
  for (int64_t g = 1; g <= experiment.groups.count; ++g) {
    groups.push_back(load_model_under_test(group_folder(run, g), overrides, data, input, "cpu"));
    check_alike(groups.front(), groups.back());
  }
  JoinedModels all = join(std::move(groups));
  ModelUnderTest& joined = all.subject;
  joined.model_path = run;
  joined.experiment = experiment;
  joined.f = choose_groups(device, all.members, *experiment.certify.noise);
  joined.sha256 = digest_groups(all.sha256s);
  if (trained_sha256(run).value_or(joined.sha256) != joined.sha256) {
    throw Error("{}: its groups' models are not those that it trained; provenance.json has others",
                run.string());
  }
  return joined;
}

void identify_groups(const ModelUnderTest& subject, CertificateIdentity& identity) {
  const CertificationOptions& o = subject.experiment.certify;
  identity.malicious = o.malicious;
  identity.seed_given = o.seed.has_value();
  identity.seed = o.seed ? *o.seed : drawn_certificate_seed(subject.model_path);
}

}  // namespace fedsmooth::jobs
