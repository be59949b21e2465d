// FedAdam, FedYogi and FedAdagrad (Reddi et al. 2021, Algorithm 2), without bias correction:
//   u <- beta1 u + (1 - beta1) Delta,  v <- as each of them says,  w <- w + eta u / (sqrt(v) + tau)
#include <cmath>

#include "fedsmooth/federated/server/server_rules.h"

namespace fedsmooth {
namespace {

// `second` gives v from v, Delta^2 and beta2.
template <typename Second>
ServerOptimizer adaptive(const char* name, double default_beta1, Second second) {
  const auto step = [=](const ServerOptions& o, const ServerStep& s) {
    const double beta1 = o.beta1.value_or(default_beta1);
    float *u = s.state[0], *v = s.state[1];
    for (int64_t i = 0; i < s.count; ++i) {
      const double delta = static_cast<double>(s.average[i]) - s.w[i];
      u[i] = static_cast<float>(beta1 * u[i] + (1 - beta1) * delta);
      v[i] = static_cast<float>(second(v[i], delta * delta, o.beta2));
      const double moved = o.learning_rate * u[i] / (std::sqrt(double{v[i]}) + o.tau);
      s.w[i] = static_cast<float>(s.w[i] + moved);
    }
  };
  return {name,
          std::nullopt,
          {{"u", [](const ServerOptions&) { return 0.0; }},
           {"v", [](const ServerOptions& o) { return o.tau * o.tau; }}},
          step};
}

}  // namespace

ServerOptimizer adam_server() {
  return adaptive("adam", 0.9, [](double v, double square, double beta2) {
    return beta2 * v + (1 - beta2) * square;
  });
}

ServerOptimizer yogi_server() {
  return adaptive("yogi", 0.9, [](double v, double square, double beta2) {
    const double sign = v > square ? 1 : v < square ? -1 : 0;
    return v - (1 - beta2) * square * sign;
  });
}

ServerOptimizer adagrad_server() {
  return adaptive("adagrad", 0.0, [](double v, double square, double) { return v + square; });
}

}  // namespace fedsmooth
