// The command line program, as the wheel's `fedsmooth` command.
#include "cli/program.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <csignal>

#include "python/src/votes.h"

namespace fedsmooth::python {
namespace {

int run_program(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // Python ignores it: `fedsmooth ... | head` would report an error
  const nb::gil_scoped_release released;
  return cli::run_program(static_cast<int>(words.size()), argv.data());
}

}  // namespace

void bind_program(nb::module_& m) {
  m.def("main", run_program, nb::arg("argv"),
        "Runs the program and returns its exit status. For a process of its own.");
}

}  // namespace fedsmooth::python
