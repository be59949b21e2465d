// `fedsmooth data`, and the kinds of data that people have, from the file to the certificate.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/model/model.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/cli/program.h"
#include "tests/data/archives.h"
#include "tests/jobs/file_server.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class DataTest : public ProgramTest {
 protected:
  // MNIST's shape: `count` images of 28x28, dark to the left or to the right.
  static std::string digits(int64_t count) {
    std::string bytes;
    for (int64_t i = 0; i < count * 28 * 28; ++i) {
      const int64_t column = i % 28, label = i / (28 * 28) % 2;
      bytes += static_cast<char>(9 * (label == 0 ? column : 27 - column));
    }
    return bytes;
  }
  static std::string labels(int64_t count, int64_t classes) {
    std::string bytes;
    for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(i % classes);
    return bytes;
  }
  std::string write_digits() {
    write_file(path("mnist/train-images-idx3-ubyte"), make_idx({40, 28, 28}, digits(40)));
    write_file(path("mnist/train-labels-idx1-ubyte"), make_idx({40}, labels(40, 2)));
    write_file(path("mnist/t10k-images-idx3-ubyte"), make_idx({4, 28, 28}, digits(4)));
    write_file(path("mnist/t10k-labels-idx1-ubyte"), make_idx({4}, labels(4, 2)));
    return " --data.name=idx --data.root=" + path("") + " ";
  }
  std::string train(const std::string& data, const std::string& more) {
    write_file(path("e.toml"),
               "partition = {kind = 'iid', clients = 4, samples_per_client = 10}\n"
               "train = {method = 'gaussian', rounds = 2, clients_per_round = 2, "
               "local = {steps = 2, batch = 5}}\n"
               "certify = {n0 = 10, n = 100, every = 1}\n");
    return "train " + path("e.toml") + data + "--device cpu --out " + path("run") + " " + more;
  }
};

TEST_F(DataTest, MnistsShapeIsTrainedAndCertified) {
  const std::string data = write_digits();
  for (const std::string model : {"small", "resnet8"}) {
    const Outcome trained = run(train(data, "--model.name=" + model));
    ASSERT_EQ(trained.status, 0) << trained.err;
    const Outcome certified = run("certify " + path("run") + " --device cpu");
    ASSERT_EQ(certified.status, 0) << certified.err;
    EXPECT_EQ(read_certificates(path("run/certificates.tsv")).size(), 4U);
    remove_folder(path("run"));
  }
}

TEST_F(DataTest, ANetworkThatDoesNotFitIsRefusedByName) {
  const std::string data = write_digits();
  expect_refused(run(train(data, "--model.name=alexnet")),
                 "network alexnet does not take images [1, 28, 28]: ");
  EXPECT_FALSE(fs::exists(path("run/model.safetensors")));
}

TEST_F(DataTest, AHundredClassesOfArrays) {
  const std::string images = ramp_bytes(int64_t{200} * 3 * 32 * 32);
  write_file(path("c.npz"),
             make_zip({{"x_train.npy", make_npy("|u1", {200, 32, 32, 3}, images)},
                       {"y_train.npy", make_npy("|u1", {200, 1}, labels(200, 100))},
                       {"x_test.npy", make_npy("|u1", {3, 32, 32, 3}, images.substr(0, 3 * 3072))},
                       {"y_test.npy", make_npy("|u1", {3, 1}, labels(3, 100))}},
                      true));
  const Outcome trained =
      run(train(" --data.name=arrays --data.root=" + path("c.npz") + " ", "--model.name=small"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(load_model(path("run/model.safetensors")).class_names.size(), 100U);
  ASSERT_EQ(run("certify " + path("run") + " --device cpu").status, 0);
  EXPECT_EQ(read_certificates(path("run/certificates.tsv")).size(), 3U);
}

TEST_F(DataTest, UnknownSetsAreRefused) {
  expect_refused(run("data imagenet"), "imagenet: not known; there are cifar10, cifar100, mnist");
  expect_refused(run("data mnist --from " + path("none") + " --out " + path("data")),
                 "none/train-images-idx3-ubyte.gz: no such file");
  EXPECT_FALSE(fs::exists(path("data/mnist")));
}

TEST_F(DataTest, AMirrorWithOtherFilesIsRefused) {
  write_file(path("mirror/cifar-10-binary.tar.gz"), make_gzip(make_tar({{"x", "y"}})));
  const FileServer server(path("mirror"));
  if (!server.runs()) GTEST_SKIP() << "no curl or no python3 to serve files";
  expect_refused(run("data cifar10 --quiet --from " + server.address() + " --out " + path("data")),
                 "that of the published file c32a1d4ab5d03f1284b67883e8d87530");
  EXPECT_TRUE(fs::is_empty(path("data")));
}

TEST_F(DataTest, AKilledDownloadLeavesNothingHalf) {
  const FileServer server(path(""), FileServer::Kind::kSlow);
  if (!server.runs()) GTEST_SKIP() << "no curl or no python3 to serve files";
  const std::string command = "data cifar10 --from " + server.address() + " --out " + path("data");
  const fs::path half = path("data/.cifar-10-batches-bin.unfinished/cifar-10-binary.tar.gz");
  const auto wait_for_bytes = [&] {
    for (int i = 0; i < 1000; ++i) {
      std::error_code status;
      if (fs::exists(half, status) && fs::file_size(half, status) > 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "no byte came";
  };
  const pid_t killed = start(command);
  wait_for_bytes();
  ::kill(killed, SIGKILL);
  finish(killed);
  EXPECT_FALSE(fs::exists(path("data/cifar-10-batches-bin")));
  EXPECT_TRUE(fs::exists(half));

  const pid_t interrupted = start(command);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  wait_for_bytes();
  ::kill(interrupted, SIGINT);
  const Outcome stopped = finish(interrupted);
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_TRUE(fs::is_empty(path("data")));
}

}  // namespace
}  // namespace fedsmooth
