#include "fedsmooth/jobs/context.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/distributed/ranks.h"

namespace fedsmooth::jobs {
namespace {

class Silent : public Progress {
  void step(const std::string&) override {}
};

}  // namespace

Ranks& ranks_of(const Context& context) {
  static Ranks alone = Ranks::alone();
  return context.ranks != nullptr ? *context.ranks : alone;
}

std::unique_ptr<Progress> begin_progress(const Context& context, const std::string& what,
                                         int64_t done, int64_t total) {
  if (context.progress) return context.progress(what, done, total);
  return std::make_unique<Silent>();
}

void check_context(const Context& context) {
  if (context.device != "auto" && context.device != "cpu" && context.device != "cuda") {
    throw Error("--device={}: must be auto, cpu or cuda", context.device);
  }
  if (context.threads < 0 || context.threads > 4096) {
    throw Error("--threads={}: must be between 0 and 4096", context.threads);
  }
}

int thread_count(const Context& context) {
  return context.threads > 0 ? context.threads : ranks_of(context).cores();
}

}  // namespace fedsmooth::jobs
