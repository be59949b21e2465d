// The sentences that explain a page's charts and tables.
#pragma once

#include <string_view>

namespace fedsmooth {

// {}: the norm's symbol, and kOtherNorm for others than l2.
inline constexpr std::string_view kWhatIsCertified =
    "<p>Every radius is a certificate for the <em>smoothed</em> classifier: "
    "<span class=\"formula\">g(x) = argmax<sub>c</sub> P[f(x + ε) = c]</span> with Gaussian noise "
    "ε of standard deviation σ gives the same answer everywhere within that {} distance of the "
    "image. It says nothing about the base network f on its own.</p>\n{}"
    "<p>Each certificate is wrong with probability at most α over its own noise. α is per image: "
    "among N images, up to αN wrong certificates are to be expected.</p>\n";

inline constexpr std::string_view kOtherNorm =
    "<p>Radii were certified in ℓ₂. For images of d values, an ℓ₂ radius r certifies the ℓ∞ radius "
    "r / √d and the ℓ₁ radius r. Attacks, which were in ℓ₂, are left out.</p>\n";

inline constexpr std::string_view kAccuracyNote =
    "<p>Certified accuracy at radius r is the share of all images, abstentions included, that are "
    "classified correctly and certified at r or more. Small print: 95% intervals (Clopper–Pearson) "
    "over the choice of test images. “At least” holds with probability 99.9% over the noise of all "
    "certificates together, if images are certified independently. The average radius counts "
    "images that are wrong or abstained on as 0. A cell is empty where no number of votes for one "
    "class could have certified the radius.</p>\n";

inline constexpr std::string_view kAttackedNote =
    "<p>“Attacked” (thin dashes) is the share of images that withstood every attack of at most r. "
    "Accuracy under the strongest attack lies between it and the certified share, as far as the "
    "same images were used for both.</p>\n";

inline constexpr std::string_view kPublishedNote =
    "<p>Published tables state radii, not the counts behind them, so that nothing in them was "
    "recomputed. Where α is not stated, “at least” is empty.</p>\n";

inline constexpr std::string_view kDistributionNote =
    "<p>The share of all images by the lower bound on the probability of the answer and by radius. "
    "Images that are wrong or abstained on stand at the left. An average certified radius can grow "
    "by giving up on hard images: then the left end grows with it. Published tables have bounds "
    "only where σ is given.</p>\n";

inline constexpr std::string_view kGroupsNote =
    "<p class=\"note\">A run of several groups trains a network in each; its curves are means over "
    "the groups.</p>\n";

inline constexpr std::string_view kTrainingNote =
    "<p>Loss is the mean over a round’s SGD steps; noisy accuracy is that of the smoothed model on "
    "some test images, in the rounds that evaluate it.</p>\n";

inline constexpr std::string_view kAttackNote =
    "<p>On each client’s first minibatch of a round: how far the adversarial examples lie from "
    "their images, in units of ε; by how much the true class’s smoothed probability falls; the "
    "cosine between the one-point and the true gradient, where measured. An attack that reaches ε "
    "without any such fall is not better than noise. Runs without an attack are left out.</p>\n";

}  // namespace fedsmooth
