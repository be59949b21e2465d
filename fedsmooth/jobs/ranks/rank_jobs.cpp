#include "fedsmooth/jobs/ranks/rank_jobs.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/training.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth::jobs {
namespace {

using nlohmann::json;

// Returns how the word of a rank fails or differs from rank 0's; empty if it does neither.
std::string find_fault(const json& word, const json& leader) {
  if (word.contains("error")) return word["error"];
  if (leader.contains("error") || word == leader) return {};
  return "differs from rank 0 in " + identity_difference(word["same"], leader["same"]);
}

std::string find_fault(const std::vector<std::string>& words) {
  const json leader = json::parse(words.front());
  for (size_t r = 0; r < words.size(); ++r) {
    const std::string fault = find_fault(json::parse(words[r]), leader);
    if (!fault.empty()) return r == 0 ? fault : fmt::format("rank {}: {}", r, fault);
  }
  return {};
}

// Two builds of one commit may still differ, in their compiler or in uncommitted changes.
json describe_build() {
  return {{"version", version()},
          {"commit", commit()},
          {"program", sha256(read_file("/proc/self/exe"))}};
}

const json kNoMoreJobs = {{"kind", "none"}};

void take_jobs(const Context& context) {
  while (true) {
    std::string text;
    ranks_of(context).broadcast(text);
    const json job = json::parse(text);
    if (job == kNoMoreJobs) return;
    try {
      if (job["kind"] == "train") {
        work_on_training(job, context);
      } else {
        work_on_certification(job, context);
      }
    } catch (const Refused&) {  // rank 0 reports the error and may announce another job
    }
  }
}

}  // namespace

void agree(Ranks& ranks, const std::function<json()>& prepare) {
  if (ranks.size() == 1) {
    prepare();
    return;
  }
  json word;
  std::exception_ptr thrown;
  try {
    word["same"] = prepare();
  } catch (const std::exception& error) {
    word = {{"error", error.what()}};
    thrown = std::current_exception();
  } catch (...) {
    word = {{"error", "stopped"}};
    thrown = std::current_exception();
  }
  const std::vector<std::string> words = ranks.gather(dump_json(word));
  std::string fault = ranks.leads() ? find_fault(words) : "";
  ranks.broadcast(fault);
  if (fault.empty()) return;
  if (!ranks.leads()) throw Refused{};
  if (thrown) std::rethrow_exception(thrown);
  throw Error(fault);
}

void do_together(Ranks& ranks, const std::function<void()>& step) {
  agree(ranks, [&]() -> json {
    step();
    return {};
  });
}

int lead_group(const Context& context, const std::function<int()>& lead) {
  if (!ranks_of(context).leads()) {
    take_jobs(context);
    return 0;
  }
  int status = 0;
  std::exception_ptr thrown;
  try {
    status = lead();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (ranks_of(context).in_step()) announce_job(ranks_of(context), kNoMoreJobs);
  if (thrown) std::rethrow_exception(thrown);
  return status;
}

void meet(const Context& context, const std::function<json()>& describe) {
  choose_gpu(ranks_of(context).local_rank());
  agree(ranks_of(context), [&] {
    json described = describe();
    if (ranks_of(context).size() > 1) described.update(describe_build());
    return described;
  });
}

int run_on_ranks(const Context& context, const std::function<json()>& describe,
                 const std::function<int()>& lead) {
  meet(context, describe);
  return lead_group(context, lead);
}

void announce_job(Ranks& ranks, const json& job) {
  if (ranks.size() == 1) return;
  std::string text = dump_json(job);
  ranks.broadcast(text);
}

json describe_experiment(const Experiment& experiment) {
  json described;
  for (const std::string& key : experiment_keys()) described[key] = show_key(experiment, key);
  if (experiment.seed_is_random) described["seed"] = "random";  // ranks will use rank 0's seed
  return described;
}

}  // namespace fedsmooth::jobs
