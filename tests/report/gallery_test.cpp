#include "fedsmooth/report/gallery.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

CertificateRow row(int64_t label, int64_t predict, double radius, int64_t top) {
  CertificateRow made;
  made.noise = &kFloatNoise;
  made.label = label;
  made.certificate.predict = predict;
  made.certificate.radius = radius;
  made.certificate.counts = {.selected = 1, .n = 1000, .top = top, .runner_up = 10};
  return made;
}

TEST(GalleryTest, TakesTheExtremesOfEachKind) {
  const std::vector<CertificateRow> rows = {row(1, 1, 0.2, 800),        row(1, 1, 0.9, 990),
                                            row(0, 1, 0.3, 900),        row(0, 1, 0.7, 980),
                                            row(1, 1, 0.5, 950),        row(1, 1, 0.9, 990),
                                            row(1, kAbstain, 0.0, 500), row(0, kAbstain, 0, 400)};
  const std::vector<GalleryGroup> groups = choose_gallery(rows, 2);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].title, "Largest radii");
  EXPECT_EQ(groups[0].rows, (std::vector<size_t>{1, 5}));  // equal radii: in the table's order
  EXPECT_EQ(groups[0].total, 4);
  EXPECT_EQ(groups[1].title, "Abstentions");
  EXPECT_EQ(groups[1].rows, (std::vector<size_t>{7, 6}));  // the most undecided first
  EXPECT_EQ(groups[2].title, "Wrong but certified");
  EXPECT_EQ(groups[2].rows, (std::vector<size_t>{3, 2}));
}

TEST(GalleryTest, LeavesOutWhatDoesNotOccur) {
  EXPECT_TRUE(choose_gallery({}).empty());
  CertificateRow skipped = row(0, 1, 0, 0);  // --only-correct: no votes were drawn
  skipped.certificate.counts.n = 0;
  const std::vector<GalleryGroup> groups = choose_gallery({row(1, 1, 0.2, 800), skipped});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].rows, (std::vector<size_t>{0}));
}

}  // namespace
}  // namespace fedsmooth
