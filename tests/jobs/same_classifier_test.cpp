#include "fedsmooth/jobs/certification/same_classifier.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"

namespace fedsmooth {
namespace {

SubjectIdentity example() {
  SubjectIdentity identity;
  identity.model_sha256 = "0123456789abcdef";
  identity.sigma = 0.25;
  identity.fingerprint = "f";
  identity.base = "cpu";
  return identity;
}

std::string refusal_of(const SubjectIdentity& there, const SubjectIdentity& here,
                       const NoiseLaw& law = kFloatNoise) {
  return refusal([&] { jobs::check_same_classifier({there, kFloatNoise}, {here, law}, "t.tsv"); });
}

TEST(SameClassifierTest, AcceptsTheSame) {
  EXPECT_FALSE(jobs::check_same_classifier({example(), kFloatNoise}, {example(), kFloatNoise}, ""));
  // The law that continues the tables of an older one.
  EXPECT_FALSE(
      jobs::check_same_classifier({example(), kCutFloatNoise}, {example(), kFloatNoise}, ""));
}

TEST(SameClassifierTest, RefusesAnotherByWhatDiffers) {
  SubjectIdentity other = example();
  other.model_sha256 = "fedcba9876543210";
  EXPECT_EQ(
      refusal_of(example(), other),
      "t.tsv: is about another model, with SHA-256 0123456789ab...; here it is fedcba987654...");
  other = example();
  other.sigma = 0.5;
  const std::string made =
      "t.tsv: was made with sigma 0.25 and float-2 noise; leave them as they are";
  EXPECT_EQ(refusal_of(example(), other), made);
  EXPECT_EQ(refusal_of(example(), example(), kExactNoise), made);
  other = example();
  other.fingerprint = "g";
  EXPECT_EQ(refusal_of(example(), other),
            "t.tsv: its classifier had other logits on the same kind of device; was the "
            "normalisation another (--model.mean, --model.sd)?");
  other = example();
  other.model_sha256 = std::nullopt;
  EXPECT_EQ(refusal_of(other, example()), "t.tsv: does not say which model it is about");
}

TEST(SameClassifierTest, OtherLogitsOfAnotherArithmeticAreReported) {
  SubjectIdentity other = example();
  other.base = "cuda";
  EXPECT_FALSE(jobs::check_same_classifier({example(), kFloatNoise}, {other, kFloatNoise}, ""));
  other.fingerprint = "g";
  EXPECT_TRUE(jobs::check_same_classifier({example(), kFloatNoise}, {other, kFloatNoise}, ""));
}

TEST(SameClassifierTest, ComparesNoFieldThatIsLeftOut) {
  const jobs::ClassifierDifference found =
      jobs::compare_classifiers({SubjectIdentity{}, kFloatNoise}, {example(), kFloatNoise});
  EXPECT_FALSE(found.model || found.sigma || found.noise || found.logits);
}

}  // namespace
}  // namespace fedsmooth
