// What tests of certify share: a model that takes no time to make, and the command on it.
#pragma once

#include <string>

#include "tests/cli/program.h"

namespace fedsmooth {

class CertifyProgramTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    ASSERT_EQ(std::system((std::string(FEDSMOOTH_NEAREST_MEAN) + " " + model()).c_str()), 0);
  }

  std::string model() const { return path("model.safetensors"); }
  /// Twenty images of the built-in data.
  std::string certify(const std::string& more) const {
    return "certify " + model() + " --data.name=shapes --every 100 --n 1000 --device cpu " + more;
  }
};

}  // namespace fedsmooth
