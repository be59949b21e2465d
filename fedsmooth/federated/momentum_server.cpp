// FedAvg and FedAvgM.
#include <algorithm>

#include "fedsmooth/federated/server_rules.h"

namespace fedsmooth {

// w <- average: as w + Delta it would round.
ServerOptimizer average_server() {
  return {"average", 1.0, {}, [](const ServerOptions&, const ServerStep& s) {
            std::copy_n(s.average, s.count, s.w);
          }};
}

// v <- beta v + Delta, w <- w + eta v.
ServerOptimizer momentum_server() {
  const auto step = [](const ServerOptions& o, const ServerStep& s) {
    const auto beta = static_cast<float>(o.momentum), eta = static_cast<float>(o.learning_rate);
    float* v = s.state[0];
    for (int64_t i = 0; i < s.count; ++i) {
      v[i] = v[i] * beta + (s.average[i] - s.w[i]);
      s.w[i] = s.w[i] + eta * v[i];
    }
  };
  return {"momentum", 1.0, {{"velocity", [](const ServerOptions&) { return 0.0; }}}, step};
}

}  // namespace fedsmooth
