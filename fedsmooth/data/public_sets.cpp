#include "fedsmooth/data/public_sets.h"

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/inflate.h"
#include "fedsmooth/base/md5.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/data/tar.h"

namespace fedsmooth {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

const std::vector<PublicSet>& public_sets() {
  static const std::vector<PublicSet> sets = {
      {"cifar10",
       "cifar10",
       "cifar-10-batches-bin",
       {"https://www.cs.toronto.edu/~kriz"},
       {{"cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"}},
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin", "test_batch.bin"}},
      {"cifar100",
       "cifar100",
       "cifar-100-binary",
       {"https://www.cs.toronto.edu/~kriz"},
       {{"cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"}},
       {"train.bin", "test.bin"}},
      {"mnist",
       "idx",
       "mnist",
       {"https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist"},
       {{"train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
        {"train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"},
        {"t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"},
        {"t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"}},
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte"}}};
  return sets;
}

std::string data_command(const std::string& name, const std::filesystem::path& root) {
  const std::string out = root == "data" ? "" : " --out " + shell_word(root.string());
  return "fedsmooth data " + name + out;
}

std::vector<UnpackedFile> unpack(const PublicSet& set, const PublicArchive& archive,
                                 std::string_view bytes, const std::string& where) {
  if (const std::string found = md5(bytes); found != archive.md5) {
    throw Error("{}: MD5 is {}, that of the published file {}; try again or another --from", where,
                found, archive.md5);
  }
  std::string content = gunzip(bytes, kLargestArchive, where);
  if (!archive.name.ends_with(".tar.gz")) {
    std::vector<UnpackedFile> one;
    one.push_back({archive.name.substr(0, archive.name.size() - 3), std::move(content)});
    return one;
  }
  std::vector<UnpackedFile> files;
  for (const TarFile& file : list_tar(content, where)) {
    const std::string prefix = set.folder + "/";
    if (!file.name.starts_with(prefix)) continue;
    const std::string name = file.name.substr(prefix.size());
    if (contains(set.files, name)) files.push_back({name, std::string(file.bytes)});
  }
  return files;
}

}  // namespace fedsmooth
