// What tests of certify share: a model that takes no time to make, and the command on it.
#pragma once

#include <string>

#include "tests/cli/program.h"
#include "tests/nearest_mean.h"

namespace fedsmooth {

class CertifyProgramTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_nearest_mean(model());
  }

  std::string model() const { return path("model.safetensors"); }
  /// Twenty images of the built-in data.
  std::string certify(const std::string& more) const {
    return "certify " + model() + " --data.name=shapes --every 100 --n 1000 --device cpu " + more;
  }

  /// By every command that reads the table.
  void expect_refused_by_all(const std::string& table, const std::string& what) {
    expect_refused(run("report " + table + " --out " + path("r.html")), what);
    expect_refused(run("report " + table + " --out " + path("r.md")), what);
    expect_refused(run("plot " + table + " --out " + path("f.svg")), what);
    expect_refused(run("merge " + table + " --out " + path("m.tsv")), what);
    expect_refused(run("recertify " + table + " --alpha 0.01 --out " + path("m.tsv")), what);
    expect_refused(run("verify " + table + " --data.name=shapes"), what);
    expect_refused(run("compare " + table + " " + table), what);
    for (const char* file : {"r.html", "r.md", "f.svg", "m.tsv", "m.json"}) {
      EXPECT_FALSE(std::filesystem::exists(path(file))) << file;
    }
  }
};

}  // namespace fedsmooth
