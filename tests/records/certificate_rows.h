// A row of a table of certificates, and what becomes of a text that is read as such a table.
#pragma once

#include <string>

#include "fedsmooth/records/certificates.h"
#include "tests/refusal.h"

namespace fedsmooth {

inline CertificateRow example_row() {
  CertificateRow row;
  row.noise = &kFloatNoise;
  row.index = 20;
  row.label = 3;
  row.seconds = 3725.000042;
  row.n0 = 100;
  row.alpha = 0.001;
  row.sigma = 0.5;
  row.seed = 18446744073709551615u;
  row.base = "cpu fp32 batch 256";
  row.certificate = {{3, 100'000, 100'000, 0}, 3, 0.999930924833009, 1.9057282816950001};
  return row;
}

/// Of parse_certificates().
inline std::string table_refusal(const std::string& text) {
  return refusal([&] { parse_certificates(text, "c.tsv"); });
}

}  // namespace fedsmooth
