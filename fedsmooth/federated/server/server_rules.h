// The library's own rules, for the table in server_optimizers.cpp.
#pragma once

#include "fedsmooth/federated/server/server_optimizers.h"

namespace fedsmooth {

// momentum_server.cpp
ServerOptimizer average_server();
ServerOptimizer momentum_server();
ServerOptimizer acg_server();

// adaptive_servers.cpp
ServerOptimizer adam_server();
ServerOptimizer yogi_server();
ServerOptimizer adagrad_server();

}  // namespace fedsmooth
