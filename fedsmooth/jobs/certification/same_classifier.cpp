#include "fedsmooth/jobs/certification/same_classifier.h"

#include "fedsmooth/base/error.h"

namespace fedsmooth::jobs {
namespace {

template <typename T>
bool differ(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

}  // namespace

ClassifierDifference compare_classifiers(const ClassifierIdentity& there,
                                         const ClassifierIdentity& here) {
  const SubjectIdentity &a = there.subject, &b = here.subject;
  return {.model = differ(a.model_sha256, b.model_sha256),
          .sigma = differ(a.sigma, b.sigma),
          .noise = &drawn_today(there.law) != &drawn_today(here.law),
          .logits = differ(a.fingerprint, b.fingerprint),
          .arithmetic = a.base != b.base};
}

bool check_same_classifier(const ClassifierIdentity& there, const ClassifierIdentity& here,
                           const std::filesystem::path& file) {
  const SubjectIdentity& stated = there.subject;
  if (here.subject.model_sha256) {
    check_same_sha256(stated.model_sha256, *here.subject.model_sha256, "model", file);
  }
  const ClassifierDifference found = compare_classifiers(there, here);
  if (found.sigma || found.noise) {
    throw Error("{}: was made with sigma {} and {} noise; leave them as they are", file.string(),
                stated.sigma.value_or(0), there.law.name);
  }
  if (found.logits && !found.arithmetic) {
    throw Error(
        "{}: its classifier had other logits on the same kind of device; was the normalisation "
        "another (--model.mean, --model.sd)?",
        file.string());
  }
  return found.logits;
}

void check_same_sha256(const std::optional<std::string>& there, const std::string& here,
                       std::string_view what, const std::filesystem::path& file) {
  if (!there) throw Error("{}: does not say which {} it is about", file.string(), what);
  if (*there != here) {
    throw Error("{}: is about another {}, with SHA-256 {}...; here it is {}...", file.string(),
                what, there->substr(0, 12), here.substr(0, 12));
  }
}

}  // namespace fedsmooth::jobs
