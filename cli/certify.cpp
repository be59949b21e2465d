// fedsmooth certify RUN_OR_MODEL [IMAGE...]: CERTIFY on the test set, or for some images.
#include "fedsmooth/jobs/certification.h"

#include "cli/advice.h"
#include "cli/against.h"
#include "cli/certify_images.h"
#include "cli/dry_run.h"
#include "cli/summary.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/jobs/certification/model_under_test.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"

namespace fedsmooth::cli {
namespace {

struct CertifyCommandArguments : jobs::CertifyArguments {
  std::vector<std::string> images;
  bool only_correct = false, dry_run = false;
};

// Refuses options of the test set's table where single images are certified.
void check_takes_images(const CertifyCommandArguments& a, const CommandContext& common) {
  const std::pair<bool, const char*> given[] = {{!a.out.empty(), "--out"},
                                                {!a.shard.empty(), "--shard"},
                                                {a.resume, "--resume"},
                                                {a.dry_run, "--dry-run"},
                                                {a.only_correct, "--only-correct"},
                                                {a.against.asked(), "--against"}};
  for (const auto& [is_given, option] : given) {
    if (is_given) throw Error("{}: is for the test set, not for {}", option, a.images[0]);
  }
  if (jobs::ranks_of(common.context).size() > 1) {
    throw Error("certify: images are certified by one process; start it without mpirun");
  }
}

int run_certify(const CertifyCommandArguments& a, Overrides overrides,
                const CommandContext& common) {
  if (!a.images.empty()) {
    check_takes_images(a, common);
    return run_certify_images({.path = a.path, .images = a.images, .with = a.with}, overrides,
                              common);
  }
  if (a.only_correct) overrides.emplace_back("certify.only_correct", "true");
  const auto describe = [&] {
    return nlohmann::json{
        {"path", a.path}, {"shard", a.shard}, {"with", a.with}, {"options", overrides}};
  };
  return jobs::run_on_ranks(common.context, describe, [&] {
    if (a.dry_run) {
      print_dry_run(jobs::dry_run_certify(a, overrides, common.context), "votes", common);
      return 0;
    }
    const std::filesystem::path table =
        a.out.empty() ? jobs::table_path(a.path, "certificates") : std::filesystem::path(a.out);
    note_if_nothing_to_resume(common, a.resume, table);
    print_summary(jobs::certify(a, overrides, common.context), common, a.against);
    const bool of_run = a.out.empty() && std::filesystem::is_directory(a.path);
    if (a.shard.empty()) {
      suggest_next(common, "report " + shell_word(of_run ? a.path : table.string()));
    }
    return 0;
  });
}

}  // namespace

void add_certify(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<CertifyCommandArguments>();
  Command c(app, common, "certify", "prove, per image, the radius in which the answer is constant",
            "  fedsmooth certify runs/quickstart/smoothadv\n"
            "  fedsmooth certify runs/quickstart/smoothadv cat.png\n"
            "  fedsmooth certify model.safetensors --data.name=cifar10 --sigma 0.25 --every 1\n"
            "  fedsmooth certify runs/a --radii 0.25,0.5,0.75\n"
            "  fedsmooth certify runs/a --plan 0.02 --n 1000000\n"
            "  fedsmooth certify scripted.pt --data.name=cifar10 --sigma 0.5 --shard 1/4 --out "
            "part1.tsv\n"
            "  fedsmooth certify runs/a --with runs/b/model.safetensors --out ab.tsv\n"
            "  fedsmooth certify runs/groups --malicious 5\n"
            "  mpirun -n 4 fedsmooth certify runs/quickstart/smoothadv");
  c.argument("run_or_model", a->path, "run folder, .safetensors or TorchScript .pt");
  c.arguments("images", a->images,
              "PNG or JPEG files, or indices of the test set: prints their certificates; the whole "
              "test set, into a table, if left out",
              /*required=*/false);
  c.options("with", a->with,
            "further members of an ensemble, certified as one by the mean of their logits");
  c.alias("sigma", "certify.sigma", "noise level; the model's own if left out");
  c.alias("n0", "certify.n0", "votes that choose the class");
  c.alias("n", "certify.n", "votes that bound its probability; their maximum with --radii, --plan");
  c.alias("radii", "certify.radii", "decide these radii (0.25,0.5), with as few votes as it takes");
  c.alias("beta", "certify.beta", "with --radii: chance of giving one up too early");
  c.alias("plan", "certify.plan", "loss of radius to accept for fewer votes");
  c.alias("malicious", "certify.malicious",
          "number of malicious clients that radii hold against, for a run of several groups");
  c.alias("alpha", "certify.alpha", "failure probability per image");
  c.alias("noise", "certify.noise", "float, or exact: without rounding errors");
  c.alias("every", "certify.every", "certify every Nth image");
  c.alias("limit", "certify.limit", "at most this many images; 0: all");
  c.alias("radius", "certify.radius", "one-sided or multiclass");
  c.flag("only-correct", a->only_correct, "no radius where the answer is wrong anyway");
  c.removed_flag("noise-bank", "certify.noise_bank");
  c.option("out", a->out, "table to write; beside the model if left out");
  c.option("shard", a->shard, "I/K: only part I of K, to be joined by merge");
  add_against(c, a->against);
  c.flag("resume", a->resume, "continue after the last complete row");
  c.flag("dry-run", a->dry_run, "print votes, predicted time and memory, and do nothing");
  c.allow_ranks();
  c.on_run([a, &common](const Overrides& overrides) { return run_certify(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
