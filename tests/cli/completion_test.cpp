// The completion of each shell, asked as the shell asks it. A shell that is not installed is
// skipped.
#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

struct Shell {
  std::string name;
  std::string no_config;  // option
  // A script with the arguments FILE fedsmooth WORD...: reads the completion FILE and prints what
  // it offers for the last word, a line each.
  std::string ask;
};

void PrintTo(const Shell& shell, std::ostream* out) { *out << shell.name; }

const Shell kShells[] = {
    {"bash", "--norc", R"(
source "$1"; shift
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_fedsmooth
printf '%s\n' "${COMPREPLY[@]}"
)"},
    {"fish", "--no-config", R"(
source $argv[1]
complete -C "$argv[2..]"
)"},
    {"zsh", "-f", R"(
compdef() { : }
offer() { local found=(${(M)${(P)1}:#$PREFIX*}); (( $#found )) && print -l -- $found }
_describe() { offer $@[-1] }
compadd() { offer $@[-1] }
_files() { print files }
source $1; shift
words=("$@"); CURRENT=$#; PREFIX=$words[-1]
_fedsmooth
)"},
};

class CompletionTest : public ProgramTest, public ::testing::WithParamInterface<Shell> {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    const std::string& name = GetParam().name;
    if (std::system(("command -v " + name + " >/dev/null").c_str()) != 0) {
      GTEST_SKIP() << name << " is not installed";
    }
    const Outcome written = run("completion " + name);
    ASSERT_EQ(written.status, 0) << written.err;
    write_file(path("completion"), written.out);
    write_file(path("ask"), GetParam().ask);
  }

  std::string offers(const std::string& line) {
    const Outcome asked =
        finish(start_command(GetParam().name + " " + GetParam().no_config + " " + path("ask") +
                             " " + path("completion") + " " + line));
    EXPECT_EQ(asked.err, "");
    return asked.out;
  }
};

TEST_P(CompletionTest, IsWellFormed) {
  const Outcome read = finish(start_command(GetParam().name + " -n " + path("completion")));
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.err, "");
}

TEST_P(CompletionTest, OffersCommandsOptionsAndKeys) {
  EXPECT_EQ(offers("fedsmooth cer").rfind("certify", 0), 0U);
  EXPECT_EQ(offers("fedsmooth --device cpu cer").rfind("certify", 0), 0U);
  EXPECT_EQ(offers("fedsmooth --vers").rfind("--version", 0), 0U);
  EXPECT_EQ(offers("fedsmooth certify --pl").rfind("--plan", 0), 0U);
  EXPECT_EQ(offers("fedsmooth certify --train.rou").rfind("--train.rounds", 0), 0U);
}

TEST_P(CompletionTest, OffersNothingThatTheCommandRefuses) {
  EXPECT_EQ(offers("fedsmooth merge --train.rou").find("--train"), std::string::npos);
  EXPECT_EQ(offers("fedsmooth merge --pl").find("--plan"), std::string::npos);
  EXPECT_EQ(offers("fedsmooth certify --noise-b").find("--noise-bank"), std::string::npos);
}

TEST_P(CompletionTest, ShowsDescriptionsWhereTheShellDoes) {
  const bool describes = GetParam().name != "bash";
  const auto contains = [&](const std::string& line, const std::string& what) {
    return offers(line).find(what) != std::string::npos;
  };
  EXPECT_EQ(contains("fedsmooth cer", "prove, per image"), describes);
  EXPECT_EQ(contains("fedsmooth certify --sig", "the model's own if left out"), describes);
}

INSTANTIATE_TEST_SUITE_P(Shells, CompletionTest, ::testing::ValuesIn(kShells),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fedsmooth
