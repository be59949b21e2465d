#include "fedsmooth/model/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <vector>

#include "fedsmooth/base/check.h"
#include "fedsmooth/model/layer_properties.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

struct PartRow {
  Part part;
  const char* name;
  std::optional<Kind> kind;  // the layer that it is; none: a property of one
};

constexpr PartRow kPartRows[] = {{Part::kNormalize, "normalize", Kind::kNormalize},
                                 {Part::kConv, "conv", Kind::kConv},
                                 {Part::kStandardize, "standardize", {}},
                                 {Part::kLinear, "linear", Kind::kLinear},
                                 {Part::kSubsample, "subsample", Kind::kSubsample},
                                 {Part::kBatchNorm, "batch-norm", Kind::kBatchNorm},
                                 {Part::kGroupNorm, "group-norm", Kind::kGroupNorm},
                                 {Part::kSum, "sum", Kind::kResidual},
                                 {Part::kRelu, "relu", Kind::kRelu},
                                 {Part::kLeakyRelu, "leaky-relu", Kind::kLeakyRelu},
                                 {Part::kSilu, "silu", Kind::kSilu},
                                 {Part::kGelu, "gelu", Kind::kGelu},
                                 {Part::kMaxPool, "max-pool", Kind::kMaxPool},
                                 {Part::kAvgPool, "avg-pool", Kind::kAvgPool},
                                 {Part::kDropout, "dropout", Kind::kDropout},
                                 {Part::kUnknownProperty, "unknown property", {}}};

}  // namespace

std::string to_string(Parts parts) {
  std::vector<std::string> names;
  for (const PartRow& row : kPartRows) {
    if (parts.has(row.part)) names.emplace_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Parts parts_of(const Layer& layer) {
  for (const PartRow& row : kPartRows) {
    if (row.kind != layer.kind) continue;
    Parts parts = {row.part};
    if (layer.standardize) parts = parts | Parts{Part::kStandardize};
    return has_only_its_properties(layer) ? parts : parts | Parts{Part::kUnknownProperty};
  }
  throw Bug("parts_of: unknown kind of layer");
}

}  // namespace fedsmooth
