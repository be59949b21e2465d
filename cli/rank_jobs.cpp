#include "cli/rank_jobs.h"

#include "cli/certification.h"
#include "cli/training.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth::cli {
namespace {

using nlohmann::json;

// What is wrong with the word of a rank, compared with rank 0's; empty: nothing.
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

void take_jobs(const Common& common) {
  while (true) {
    std::string text;
    common.ranks->broadcast(text);
    const json job = json::parse(text);
    if (job == kNoMoreJobs) return;
    try {
      if (job["kind"] == "train") {
        take_training(job, common);
      } else {
        take_certification(job, common);
      }
    } catch (const Refused&) {  // rank 0 tells, and may have other jobs
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

int lead_group(const Common& common, const std::function<int()>& lead) {
  if (!common.ranks->leads()) {
    take_jobs(common);
    return 0;
  }
  int status = 0;
  std::exception_ptr thrown;
  try {
    status = lead();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (common.ranks->in_step()) announce_job(*common.ranks, kNoMoreJobs);
  if (thrown) std::rethrow_exception(thrown);
  return status;
}

void meet(const Common& common, const std::function<json()>& describe) {
  agree(*common.ranks, [&] {
    json described = describe();
    if (common.ranks->size() > 1) described.update(describe_build());
    return described;
  });
}

int run_on_ranks(const Common& common, const std::function<json()>& describe,
                 const std::function<int()>& lead) {
  meet(common, describe);
  return lead_group(common, lead);
}

void announce_job(Ranks& ranks, const json& job) {
  if (ranks.size() == 1) return;
  std::string text = dump_json(job);
  ranks.broadcast(text);
}

json describe_experiment(const Experiment& experiment) {
  json described;
  for (const std::string& key : experiment_keys()) described[key] = show_key(experiment, key);
  if (experiment.seed_is_random) described["seed"] = "random";  // rank 0's will be taken
  return described;
}

}  // namespace fedsmooth::cli
