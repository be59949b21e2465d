#include "fedsmooth/records/attack_identity.h"

#include "fedsmooth/records/table_file.h"

namespace fedsmooth {
namespace {

struct AttackFields {
  template <typename Identity, typename Visit>
  void operator()(Identity& identity, const Visit& visit) const {
    SubjectFields{}(identity, visit);
    visit("n", identity.n);
    visit("epsilons", identity.epsilons);
    visit("attack.estimator", identity.estimator);
    visit("attack.steps", identity.steps);
    visit("attack.step_size", identity.step_size);
    visit("attack.normalize", identity.normalize);
    visit("smoothing.m", identity.m);
    visit("certify.noise", identity.noise);
  }
};

}  // namespace

AttackIdentity AttackIdentity::from_json(const nlohmann::json& object, const std::string& name) {
  return read_fields<AttackIdentity>(AttackFields{}, object, name);
}

nlohmann::json AttackIdentity::to_json() const { return write_fields(AttackFields{}, *this); }

std::string AttackIdentity::difference(const AttackIdentity& there) const {
  return identity_difference(to_json(), there.to_json());
}

AttackIdentity read_attack_identity(const std::filesystem::path& table) {
  return AttackIdentity::from_json(read_sidecar(table)["identity"], sidecar_path(table).string());
}

}  // namespace fedsmooth
