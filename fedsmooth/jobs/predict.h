// PREDICT and CERTIFY for image files or single images of the test set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth::jobs {

struct PredictArguments {
  std::string path;                 // run folder or model
  std::vector<std::string> images;  // PNG or JPEG files, or indices of the test set
  int64_t n = 1000;                 // votes per image
  std::vector<std::string> with;    // further models, as one classifier with `path`
};

struct Answer {
  std::string image;                     // as it was given
  std::string label;                     // its right class, if it is of the test set; else empty
  int64_t predict = -1;                  // kAbstain if the votes do not settle it
  std::string class_name;                // "abstain" if predict is kAbstain
  std::vector<int64_t> votes;            // for each class
  std::vector<std::string> class_names;  // of all classes
  uint64_t seed = 0;                     // of the noise; with it the votes can be reproduced
};

/// Returns the smoothed classifier's answers, in the order of the images, and calls `on_answer`
/// with each as soon as it is known. The seed is drawn unless the overrides give one. Warns if the
/// model's certificates are of another classifier; several models (`with`) are not checked. For a
/// model of grey images, a file whose colour channels are equal is read as one channel.
std::vector<Answer> predict(const PredictArguments& arguments, const Overrides& overrides,
                            const Context& context,
                            const std::function<void(const Answer&)>& on_answer = {});

struct ProvedAnswer {
  std::string image;        // as it was given
  std::string label;        // its right class, if it is of the test set; else empty
  Certificate certificate;  // its radius is in the norm `norm`
  std::string class_name;   // "abstain" if nothing is certified
  std::string norm;         // l2, l1 or linf
  double alpha = 0;         // bound on the probability that the certificate is wrong
  uint64_t seed = 0;        // of the noise; with it the votes can be reproduced
};

/// Certifies each image by the options of [certify], but without `only_correct`, as these images
/// may have no labels, and calls `on_answer` with each answer. `arguments.n` is not used. No file
/// is written. Seeds, warnings and grey files are handled as by predict().
std::vector<ProvedAnswer> certify_images(
    const PredictArguments& arguments, const Overrides& overrides, const Context& context,
    const std::function<void(const ProvedAnswer&)>& on_answer = {});

/// Returns "stripes, proved within 0.76", with the radius rounded down, or "abstains, nothing is
/// proved". Radii in other norms than l2 are followed by the norm.
std::string describe(const ProvedAnswer& answer);

/// Returns `name`, or "`kind` `name`" if it is a number: data sets without names call their classes
/// by number, and images of the test set are numbers.
std::string spoken_name(const std::string& kind, const std::string& name);

}  // namespace fedsmooth::jobs
