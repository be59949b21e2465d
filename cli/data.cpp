// fedsmooth data NAME [--out DIR] [--from DIR_OR_URL]: a published data set, verified and unpacked.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "fedsmooth/jobs/fetch_data.h"

namespace fedsmooth::cli {
namespace {

struct DataArguments {
  std::string name, out = "data", from;
};

}  // namespace

void add_data(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<DataArguments>();
  Command c(app, common, "data", "download a data set, verify and unpack it",
            "  fedsmooth data cifar10\n"
            "  fedsmooth data mnist --out /data\n"
            "  fedsmooth data cifar100 --from https://mirror.example/cifar\n"
            "  fedsmooth data cifar100 --from ~/Downloads");
  c.argument("name", a->name, "cifar10, cifar100 or mnist");
  c.option("out", a->out, "folder to put it in; data if left out");
  c.option("from", a->from, "folder or address that has the archives, in place of the publisher's");
  c.on_run([a, &common] {
    const PublicSet& set = jobs::find_public_set(a->name);
    const jobs::FetchedData found = jobs::fetch_data(set, {a->out, a->from}, common.context);
    print_result(
        common,
        {{"folder", found.folder.string()},
         {"is_new", found.is_new},
         {"data.name", set.source},
         {"data.root", a->out}},
        fmt::format("{}: {}\nuse it by --data.name={} --data.root={}\n", found.folder.string(),
                    found.is_new ? "verified and unpacked" : "is there, and is what was published",
                    set.source, a->out));
    return 0;
  });
}

}  // namespace fedsmooth::cli
