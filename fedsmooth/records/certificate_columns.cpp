#include "fedsmooth/records/certificate_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fedsmooth {
namespace {

constexpr std::string_view kHeader =
    "idx\tlabel\tpredict\tradius\tcorrect\ttime\tselected\tn0\tn\tcount_top\tcount_runner_up\t"
    "p_lower\talpha\tsigma\tradius_exact\tseed\tbase\tnoise\tshared\trule\tcap\tbeta\tradii\n";
constexpr size_t kOldColumns[] = {19, 17};
constexpr std::string_view kExactSuffix = "/exact-noise", kSharedSuffix = "/noise-bank";

std::string header_of(size_t column_count) {
  std::vector<std::string_view> columns = columns_of(kHeader);
  columns.resize(column_count);
  return fmt::format("{}\n", fmt::join(columns, "\t"));
}

const NoiseLaw* read_noise(FieldReader& fields) {
  const NoiseLaw* law = find_law(fields.text());
  if (law == nullptr) fields.refuse("noise must be float-2, float or exact");
  return law;
}

bool read_shared(FieldReader& fields) {
  const std::string value = fields.text();
  if (value != "0" && value != "1") fields.refuse("shared must be 0 or 1");
  return value == "1";
}

}  // namespace

std::string certificate_header() { return std::string(kHeader); }

std::vector<std::string_view> columns_of(std::string_view header) {
  return split_tabs(header.substr(0, header.size() - 1));
}

std::string find_header(std::string_view text) {
  if (text.starts_with(kHeader)) return std::string(kHeader);
  for (const size_t columns : kOldColumns) {
    if (text.starts_with(header_of(columns))) return header_of(columns);
  }
  return {};
}

void take_noise_from_base(CertificateRow& row) {
  const auto take = [&](std::string_view suffix) {
    const bool found = row.base.ends_with(suffix);
    if (found) row.base.resize(row.base.size() - suffix.size());
    return found;
  };
  if (take(kSharedSuffix)) row.shared = true;
  if (take(kExactSuffix)) row.noise = &kExactNoise;
}

void read_noise_columns(FieldReader& fields, CertificateRow& row) {
  if (fields.more()) {
    row.noise = read_noise(fields);
    row.shared = read_shared(fields);
  } else {
    row.noise = &kCutFloatNoise;
    take_noise_from_base(row);
  }
}

}  // namespace fedsmooth
