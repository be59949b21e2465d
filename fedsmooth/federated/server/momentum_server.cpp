// FedAvg, FedAvgM and FedACG.
#include <algorithm>

#include "fedsmooth/federated/server/server_rules.h"

namespace fedsmooth {

// w <- w + eta Delta. With eta = 1 that is the average, which w + Delta would round.
ServerOptimizer average_server() {
  const auto step = [](const ServerOptions& o, const ServerStep& s) {
    if (o.learning_rate == 1) {
      std::copy_n(s.average, s.count, s.w);
      return;
    }
    const auto eta = static_cast<float>(o.learning_rate);
    for (int64_t i = 0; i < s.count; ++i) s.w[i] = s.w[i] + eta * (s.average[i] - s.w[i]);
  };
  return {"average", 1.0, {}, step};
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

// FedACG (Kim et al. 2024): clients start from w + lambda v, and mu pulls them there;
// Delta = average - (w + lambda v), v <- lambda v + eta Delta, w <- w + v.
ServerOptimizer acg_server() {
  const auto look_ahead = [](const ServerOptions& o, const ServerStep& s) {
    const auto lambda = static_cast<float>(o.momentum);
    const float* v = s.state[0];
    for (int64_t i = 0; i < s.count; ++i) s.w[i] = s.w[i] + lambda * v[i];
  };
  const auto step = [](const ServerOptions& o, const ServerStep& s) {
    const auto lambda = static_cast<float>(o.momentum), eta = static_cast<float>(o.learning_rate);
    float* v = s.state[0];
    for (int64_t i = 0; i < s.count; ++i) {
      const float ahead = lambda * v[i];
      v[i] = ahead + eta * (s.average[i] - (s.w[i] + ahead));
      s.w[i] = s.w[i] + v[i];
    }
  };
  return {"acg", 1.0, {{"velocity", [](const ServerOptions&) { return 0.0; }}}, step, look_ahead};
}

}  // namespace fedsmooth
