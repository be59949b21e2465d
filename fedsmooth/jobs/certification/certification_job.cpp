#include "fedsmooth/jobs/certification/certification_job.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/certification/ensemble_under_test.h"
#include "fedsmooth/jobs/certification/groups_under_test.h"
#include "fedsmooth/records/certificates.h"

namespace fedsmooth::jobs {
namespace {

Shard asked_shard(const std::string& text) {
  if (text.empty()) return {};
  const std::optional<Shard> shard = parse_shard(text);
  if (!shard) throw Error("--shard={}: must be I/K with 1 <= I <= K", text);
  return *shard;
}

// Returns the images of a shard: every Kth of the chosen ones.
std::vector<int64_t> images_of_shard(const std::vector<int64_t>& images, Shard shard) {
  std::vector<int64_t> taken;
  for (size_t i = shard.number - 1; i < images.size(); i += shard.count) taken.push_back(images[i]);
  return taken;
}

void check_images_in_hand(const ImagesInHand& a, int64_t classes) {
  if (a.images.size() == 0) throw Error("data: no images");
  if (std::ssize(a.indices) != a.images.size()) {
    throw Error("data: {} images with {} indices", a.images.size(), a.indices.size());
  }
  for (size_t i = 0; i < a.indices.size(); ++i) {
    if (a.indices[i] < 0 || a.indices[i] > UINT32_MAX) {
      throw Error("data: index {} must be from 0 to 2^32 - 1", a.indices[i]);
    }
    if (i > 0 && a.indices[i] <= a.indices[i - 1]) throw Error("data: indices must rise");
    const int64_t label = a.images.labels[i];
    if (label < 0 || label >= classes) {
      throw Error("data: label {} of image {}; there are {} classes", label, a.indices[i], classes);
    }
  }
  const Array& images = a.images.images;
  if (images.type() == Array::Type::kByte) return;
  // CERTIFY refuses such values too, but only after the table was begun.
  const auto inside = [](float value) { return value >= 0 && value <= 1; };
  if (!std::all_of(images.floats(), images.floats() + images.count(), inside)) {
    throw Error("data: pixel values outside [0, 1]; divide bytes by 255 and do not normalise");
  }
}

// Sets the fields on which certificates depend besides model and data.
void identify_options(const CertificationOptions& o, CertificateIdentity& identity) {
  identity.n0 = o.selection_votes();
  identity.n = o.n;
  identity.alpha = o.level();
  identity.radius = o.radius;
  identity.only_correct = o.only_correct;
  identity.noise = o.noise->name;
  if (o.rule() == VoteRule::kRadii) {
    identity.radii = ladder_of(o.radii);
    identity.beta = o.beta;
  }
  if (o.rule() == VoteRule::kPlan) identity.plan = o.plan;
}

// Sets the fields that follow from model and data: the seed that "auto" stands for, and `subject`,
// which binds the rows.
void settle_identity(const ModelUnderTest& subject, int64_t classes,
                     CertificateIdentity& identity) {
  const Experiment& e = subject.experiment;
  identity.classes = classes;
  identity.seed = certified_seed(e);
  if (subject.f.groups > 0) {
    identify_groups(subject, identity);
  } else if (!e.certify.seed) {
    identity.run_seed = e.seed;
    identity.seed = derive_seed(e.seed, *identity.model_sha256, *identity.data_sha256);
  }
  identity.subject = digest_subject(identity);
}

}  // namespace

std::optional<Shard> parse_shard(const std::string& text) {
  Shard shard;
  char end = 0;
  const int read = std::sscanf(text.c_str(), "%ld/%ld%c", &shard.number, &shard.count, &end);
  if (read != 2 || shard.number < 1 || shard.number > shard.count) return std::nullopt;
  return shard;
}

std::shared_ptr<const TestSets::Set> TestSets::load(const DataOptions& o) {
  const std::lock_guard lock(mutex_);
  auto& set = sets_[fmt::format("{}\n{}\n{}", o.name, o.root, o.held_out)];
  if (!set) {
    Dataset data = load_dataset(o, Split::kTest);
    const std::string sha256 = digest(data);
    set = std::make_shared<const Set>(Set{std::move(data), sha256});
  }
  return set;
}

CertificationJob load_job(const CertifyArguments& a, const Overrides& overrides,
                          const Context& context, TestSets& test_sets) {
  const Shard shard = asked_shard(a.shard);
  CertificationJob job;
  const auto test = test_sets.load(data_of_model(a.path, overrides));
  job.data = test->data;
  const Shape shape = image_shape(job.data);
  job.subject = load_under_test({a.path, a.with}, overrides, &job.data, shape, context.device);
  const CertificationOptions& options = job.subject.experiment.certify;
  const NoiseLaw& law = *options.noise;
  check_malicious(options, job.subject.f.groups);
  check_certify_options(options, job.subject.sigma, law);
  job.images = images_of_shard(choose_images(job.data.size(), options), shard);
  if (job.images.empty()) throw Error("--shard={}: no images are left for it", a.shard);
  job.budget = std::make_shared<VoteBudget>(options, job.subject.sigma, law);
  job.sampler = make_sampler(job.subject.f, law, thread_count(context), context.stopped);
  job.subject.fingerprint = job.sampler->check(job.data.shape());
  job.ranks = ranks_of(context).size();
  static_cast<SubjectIdentity&>(job.identity) = identify(job.subject, job.data, test->sha256);
  identify_options(options, job.identity);
  job.identity.shard = fmt::format("{}/{}", shard.number, shard.count);
  settle_identity(job.subject, job.sampler->classes(), job.identity);
  return job;
}

CertificationJob job_in_hand(const ClassifierInHand& c, const ImagesInHand& a,
                             const CertificationOptions& options) {
  CertificationJob job;
  check_images_in_hand(a, a.images.classes());
  if (c.sampler->groups() > 0) {
    throw Error("{}: is several groups, whose certificates need the folder of their run", c.name);
  }
  check_malicious(options, 0);
  check_certify_options(options, options.sigma, c.sampler->law());
  job.data = a.images;
  job.sampler = c.sampler;
  job.budget = std::make_shared<VoteBudget>(options, options.sigma, c.sampler->law());
  job.subject.model_path = c.name;
  job.subject.sigma = options.sigma;
  job.subject.class_names = a.images.class_names;
  job.subject.experiment.certify = options;
  job.subject.experiment.certify.noise = &c.sampler->law();
  job.images = a.indices;
  job.picked = true;
  const std::string& fingerprint = c.sampler->check(a.images.shape());
  CertificateIdentity& identity = job.identity;
  identity.model_sha256 = c.sha256.empty() ? fingerprint : c.sha256;
  identity.data = a.name;
  identity.data_sha256 = a.sha256.empty() ? digest(a.images) : a.sha256;
  identity.sigma = options.sigma;
  identity.every = options.every;
  identity.limit = options.limit;
  identity.images = std::ssize(job.images);
  identity.fingerprint = fingerprint;
  identity.base = c.sampler->description();
  identify_options(job.subject.experiment.certify, identity);
  identity.shard = "1/1";
  settle_identity(job.subject, c.sampler->classes(), identity);
  return job;
}

}  // namespace fedsmooth::jobs
