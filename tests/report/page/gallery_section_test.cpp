#include "fedsmooth/report/page/gallery_section.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

CertificateRow row(int64_t index, int64_t label, int64_t predict, double radius, int64_t top) {
  CertificateRow made;
  made.noise = &kFloatNoise;
  made.index = index;
  made.label = label;
  made.sigma = 0.25;
  made.certificate.predict = predict;
  made.certificate.radius = radius;
  made.certificate.counts = {.selected = 1, .n = 100'000, .top = top, .runner_up = 120};
  return made;
}

RunRecord example_run() {
  RunRecord run{"run", {"cat", "dog"}};
  run.rows = {row(3, 1, 1, 0.5, 97'000), row(20, 0, 1, 0.25, 90'000),
              row(40, 0, kAbstain, 0, 49'000)};
  for (const CertificateRow& r : run.rows) {
    run.images[r.index] = Array({3, 4, 4}, Array::Type::kByte);
  }
  return run;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(GallerySectionTest, ImagesStandWithTheirVotes) {
  const std::string html = render_gallery(example_run());
  EXPECT_EQ(count_of(html, "<img src=\"data:image/png;base64,"), 3U);
  EXPECT_TRUE(contains(html, "<h5>Largest radii <small>1 of 1</small></h5>"));
  EXPECT_TRUE(contains(html, "<strong>dog</strong> <span>radius 0.500</span>")) << html;
  EXPECT_TRUE(contains(html, "97,000 of 100,000 votes for dog, 120 for the next"));
  EXPECT_TRUE(contains(html, "<strong>cat</strong> <span>answer dog, radius 0.250</span>"));
  EXPECT_TRUE(contains(html, "<span>no answer</span>"));
  EXPECT_TRUE(contains(html, "<span>image 40</span>"));
}

TEST(GallerySectionTest, WithoutImagesALineSaysWhy) {
  RunRecord run = example_run();
  run.images.clear();
  run.no_images = "<data>: no such file";
  EXPECT_EQ(render_gallery(run),
            "<p class=\"note\">No test images are shown: &lt;data&gt;: no such file.</p>\n");
  EXPECT_EQ(render_noise({run}), "");
}

TEST(GallerySectionTest, NamesStayText) {
  RunRecord run = example_run();
  run.class_names = {"\"><script>alert(1)</script>", "a\nb"};
  const std::string html = render_gallery(run);
  EXPECT_FALSE(contains(html, "<script"));
  EXPECT_TRUE(contains(html, "alt=\"test image 20, &quot;&gt;&lt;script&gt;"));
  EXPECT_TRUE(contains(html, "<strong>a b</strong>"));
}

TEST(GallerySectionTest, NoiseIsShownForEverySigma) {
  RunRecord other = example_run();
  for (CertificateRow& r : other.rows) r.sigma = 0.5;
  EXPECT_EQ(count_of(render_noise({example_run()}), "<figcaption>σ = 0.25</figcaption>"), 3U);
  const std::string both = render_noise({example_run(), other});
  EXPECT_EQ(count_of(both, "<figcaption>σ = 0.25</figcaption>"), 1U);
  EXPECT_EQ(count_of(both, "<figcaption>σ = 0.5</figcaption>"), 1U);
  EXPECT_EQ(count_of(both, "<figcaption>without noise</figcaption>"), 1U);
}

}  // namespace
}  // namespace fedsmooth
