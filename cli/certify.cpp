// fedsmooth certify RUN_OR_MODEL: CERTIFY on the test set.
#include "fedsmooth/jobs/certification.h"

#include "cli/dry_run.h"
#include "cli/summary.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"

namespace fedsmooth::cli {

void add_certify(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<jobs::CertifyArguments>();
  struct Flags {
    bool only_correct = false, dry_run = false;
  };
  auto flags = std::make_shared<Flags>();
  Command c(app, common, "certify",
            "prove, per test image, the radius in which the answer is constant",
            "  fedsmooth certify runs/quickstart/smoothadv\n"
            "  fedsmooth certify model.safetensors --data.root=data --sigma 0.25 --every 1\n"
            "  fedsmooth certify model.safetensors --radii 0.25,0.5,0.75\n"
            "  fedsmooth certify model.safetensors --plan 0.02 --n 1000000\n"
            "  fedsmooth certify scripted.pt --sigma 0.5 --shard 1/4 --out part1.tsv\n"
            "  fedsmooth certify a.safetensors --with b.safetensors c.safetensors --out abc.tsv\n"
            "  fedsmooth certify runs/groups --malicious 5\n"
            "  mpirun -n 4 fedsmooth certify runs/quickstart/smoothadv");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.options("with", a->with,
            "models that are certified with it as one, by the mean of their logits");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("n0", "certify.n0", "votes that choose the class");
  c.alias("n", "certify.n", "votes that bound its probability, or the most of them");
  c.alias("radii", "certify.radii", "decide these radii (0.25,0.5), with as few votes as it takes");
  c.alias("beta", "certify.beta", "with --radii: chance of giving one up too early");
  c.alias("plan", "certify.plan", "loss of radius to accept for fewer votes");
  c.alias("malicious", "certify.malicious",
          "of a run of several groups: against at most so many malicious clients");
  c.alias("alpha", "certify.alpha", "failure probability per image");
  c.alias("noise", "certify.noise", "float, or exact: without rounding errors");
  c.alias("every", "certify.every", "certify every Nth image");
  c.alias("limit", "certify.limit", "at most this many images; 0: all");
  c.alias("radius", "certify.radius", "one-sided or multiclass");
  c.flag("only-correct", flags->only_correct, "no radius where the answer is wrong anyway");
  c.removed_flag("noise-bank", "certify.noise_bank");
  c.option("out", a->out, "table to write; beside the model if left out");
  c.option("shard", a->shard, "I/K: only part I of K, to be joined by merge");
  c.flag("resume", a->resume, "continue after the last complete row");
  c.flag("dry-run", flags->dry_run, "print votes, predicted time and memory, and do nothing");
  c.take_ranks();
  c.on_run([a, flags, &common](Overrides overrides) {
    if (flags->only_correct) overrides.emplace_back("certify.only_correct", "true");
    const auto describe = [&] {
      return nlohmann::json{
          {"path", a->path}, {"shard", a->shard}, {"with", a->with}, {"options", overrides}};
    };
    return jobs::run_on_ranks(common.context, describe, [&] {
      if (flags->dry_run) {
        print_dry_run(jobs::dry_run_certify(*a, overrides, common.context), "votes", common);
        return 0;
      }
      print_summary(jobs::certify(*a, overrides, common.context), common);
      return 0;
    });
  });
}

}  // namespace fedsmooth::cli
