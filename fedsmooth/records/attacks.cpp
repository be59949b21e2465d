#include "fedsmooth/records/attacks.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/table_file.h"
#include "fedsmooth/records/tsv.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader = "idx\tlabel\tepsilon\tpredict\tcorrect\tperturbation\n";
constexpr int64_t kMaxIndex = 1'000'000'000;
constexpr double kAny = 1e300;

void refuse_void(std::string_view text, const std::string& name) {
  for (size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', end + 1)) {
    const std::string_view line = text.substr(end + 1);
    if (!is_void(line)) continue;
    throw Error("{}: is void: {}; attack again into another table", name,
                void_reason(line).substr(0, 200));
  }
}

}  // namespace

std::string attack_header() { return std::string(kHeader); }

std::string format_attack(const AttackRow& row) {
  return fmt::format("{}\t{}\t{}\t{}\t{:d}\t{:.6f}\n", row.index, row.label, row.epsilon,
                     row.predict, row.correct(), row.perturbation);
}

std::vector<AttackRow> parse_attacks(std::string_view text, const std::string& name) {
  refuse_void(text, name);
  std::vector<AttackRow> rows;
  parse_tsv(text, kHeader, name, [&](const TsvRow& row) {
    rows.push_back({row.whole(0, 0, kMaxIndex), row.whole(1, 0, kMaxIndex), row.number(2, 0, kAny),
                    row.whole(3, kAbstain, kMaxIndex), row.number(5, 0, kAny)});
    if (row.whole(4, 0, 1) != rows.back().correct()) {
      throw Error("{}: correct does not follow from predict and label", row.where);
    }
  });
  return rows;
}

std::vector<AttackRow> read_attacks(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  check_seal(path, text);
  return parse_attacks(text, path.string());
}

}  // namespace fedsmooth
