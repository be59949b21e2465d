// All that is known about one run: its tables, as far as they exist, and their provenance.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/base/array.h"
#include "fedsmooth/records/attacks.h"
#include "fedsmooth/records/certificate_identity.h"
#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/clients.h"
#include "fedsmooth/records/conformal_file.h"
#include "fedsmooth/records/rounds.h"
#include "fedsmooth/report/norm.h"

namespace fedsmooth {

struct AgainstResult;  // report/against.h

struct RunRecord {
  std::string name;
  std::vector<std::string> class_names;  // may be empty: classes then go by number
  std::vector<CertificateRow> rows;      // none: not certified yet; radii are in `norm`
  CertificateIdentity identity;          // of the rows, from the JSON beside them
  std::vector<std::pair<std::string, std::string>> provenance;  // shown as a table, in this order
  std::vector<RoundRow> rounds;
  std::vector<ClientRow> clients;
  int64_t groups = 0;  // number of groups over which `rounds` are means; 0: one network
  std::vector<AttackRow> attacks;
  std::optional<ConformalCalibration> conformal;  // of conformal.json in the run's folder
  std::string attacked_base;  // the base classifier that was attacked; empty if it is not known
  std::string experiment;     // TOML; empty if it is not known
  Norm norm = Norm::kL2;
  int64_t values = 0;  // numbers in an image: 3 x 32 x 32 of CIFAR-10; 0 if it is not known
  std::map<int64_t, Array> images;  // bytes [1 or 3, H, W] of some test images, by index
  std::string no_images;            // why there are none, in words
  std::string label;                // the name on pages and in figures; empty: `name`
  std::string path = {};            // where it was loaded from; empty: nowhere
  std::shared_ptr<const AgainstResult> against = {};  // null: not certified against classes

  bool unfinished = false;  // its training has not ended

  bool certified() const { return !rows.empty(); }
  const std::string& shown_name() const { return label.empty() ? name : label; }
  /// Returns whether an earlier version wrote the rows and did not bind them to model and data.
  bool unbound() const {
    return certified() && !rows.front().published && rows.front().subject.empty();
  }
};

}  // namespace fedsmooth
