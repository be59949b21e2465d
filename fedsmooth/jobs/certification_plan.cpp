#include "fedsmooth/jobs/certification_plan.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/records/certificates.h"

namespace fedsmooth::jobs {
namespace {

Shard asked_shard(const std::string& text) {
  if (text.empty()) return {};
  const std::optional<Shard> shard = parse_shard(text);
  if (!shard) throw Error("--shard={}: must be I/K with 1 <= I <= K", text);
  return *shard;
}

// A shard takes every Kth of the chosen images.
std::vector<int64_t> take_shard(const std::vector<int64_t>& images, Shard shard) {
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
  // CERTIFY refuses them too, but after the table was begun.
  const auto inside = [](float value) { return value >= 0 && value <= 1; };
  if (!std::all_of(images.floats(), images.floats() + images.count(), inside)) {
    throw Error("data: pixel values outside [0, 1]; divide bytes by 255 and do not normalise");
  }
}

}  // namespace

std::optional<Shard> parse_shard(const std::string& text) {
  Shard shard;
  char end = 0;
  const int read = std::sscanf(text.c_str(), "%ld/%ld%c", &shard.number, &shard.count, &end);
  if (read != 2 || shard.number < 1 || shard.number > shard.count) return std::nullopt;
  return shard;
}

nlohmann::json describe_options(const Experiment& e) {
  const CertificationOptions& o = e.certify;
  nlohmann::json described = {{"n0", o.selection_votes()},
                              {"n", o.n},
                              {"alpha", o.alpha},
                              {"radius", radius_name(o.radius)},
                              {"only_correct", o.only_correct},
                              {"noise_bank", false},  // until 0.2 images could share their draws
                              {"noise", o.noise->name}};
  if (o.rule() == VoteRule::kRadii) {
    described.update({{"radii", ladder_of(o.radii)}, {"beta", o.beta}});
  }
  if (o.rule() == VoteRule::kPlan) described["plan"] = o.plan;
  return described;
}

CertificationJob load_plan(const CertifyArguments& a, const Overrides& overrides,
                           const Context& context) {
  const Shard shard = asked_shard(a.shard);
  CertificationJob plan;
  plan.data = load_dataset(experiment_of_model(a.path, overrides).data, Split::kTest);
  const Shape shape = image_shape(plan.data);
  plan.subject = load_model_under_test(a.path, overrides, &plan.data, shape, context.device);
  const CertificationOptions& options = plan.subject.experiment.certify;
  const NoiseLaw& law = *options.noise;
  check_certify_options(options, plan.subject.sigma, law);
  plan.images = take_shard(choose_images(plan.data.size(), options), shard);
  if (plan.images.empty()) throw Error("--shard={}: no images are left for it", a.shard);
  plan.budget = std::make_shared<VoteBudget>(options, plan.subject.sigma, law);
  plan.sampler = make_sampler(plan.subject.f, law, thread_count(context), context.stopped);
  plan.subject.fingerprint = plan.sampler->check(plan.data.shape());
  plan.identity = describe_model_under_test(plan.subject, plan.data);
  plan.identity.update(describe_options(plan.subject.experiment));
  plan.ranks = ranks_of(context).size();
  plan.identity["shard"] = fmt::format("{}/{}", shard.number, shard.count);
  return plan;
}

CertificationJob plan_in_hand(const ClassifierInHand& c, const ImagesInHand& a,
                              const CertificationOptions& options) {
  CertificationJob plan;
  check_images_in_hand(a, a.images.classes());
  check_certify_options(options, options.sigma, c.sampler->law());
  plan.data = a.images;
  plan.sampler = c.sampler;
  plan.budget = std::make_shared<VoteBudget>(options, options.sigma, c.sampler->law());
  plan.subject.model_path = c.name;
  plan.subject.sigma = options.sigma;
  plan.subject.class_names = a.images.class_names;
  plan.subject.experiment.certify = options;
  plan.subject.experiment.certify.noise = &c.sampler->law();
  plan.images = a.indices;
  plan.picked = true;
  const std::string& fingerprint = c.sampler->check(a.images.shape());
  plan.identity = describe_options(plan.subject.experiment);
  plan.identity.update({{"model_sha256", c.sha256.empty() ? fingerprint : c.sha256},
                        {"data", a.name},
                        {"data_sha256", a.sha256.empty() ? digest(a.images) : a.sha256},
                        {"sigma", options.sigma},
                        {"seed", certified_seed(plan.subject.experiment)},
                        {"every", options.every},
                        {"limit", options.limit},
                        {"images", plan.images.size()},
                        {"fingerprint", fingerprint},
                        {"base", c.sampler->description()},
                        {"shard", "1/1"}});
  return plan;
}

}  // namespace fedsmooth::jobs
