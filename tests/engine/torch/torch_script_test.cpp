#ifdef FEDSMOOTH_TORCH

#include "fedsmooth/engine/torch/torch_script.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/script.h>
#include <unistd.h>

#include <filesystem>

#include "fedsmooth/base/file.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "tests/folder.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class TorchScriptTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { remove_folder(folder_); }

  /// Saves a module whose forward is the given TorchScript.
  void save(const std::string& forward, bool training = false) const {
    torch::jit::Module module("M");
    module.register_parameter("weight", torch::tensor({{1.0f, 0.0f}, {2.0f, 1.0f}}), false);
    module.define(forward);
    module.register_attribute("training", c10::BoolType::get(), training);
    module.save(path_);
  }

  TensorFunction load() const { return load_torch_script(path_, /*gpu=*/false); }

  std::string load_refusal() const {
    return refusal([&] { load(); });
  }

  std::string run_refusal(at::IntArrayRef shape) const {
    const auto f = load();
    return refusal([&] { f(torch::ones(shape)); });
  }

  fs::path folder_ =
      fs::temp_directory_path() / ("fedsmooth_torch_script_test" + std::to_string(::getpid()));
  std::string path_ = folder_ / "model.pt";
};

constexpr const char* kLinear = R"(
def forward(self, x):
    return torch.matmul(x.flatten(1), self.weight)
)";

void expect_one_line(const std::string& message, const std::string& begin,
                     const std::string& part) {
  EXPECT_EQ(message.rfind(begin, 0), 0u) << message;
  EXPECT_PRED_FORMAT2(testing::IsSubstring, part, message);
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

// The logits' sum is (1 + 0) x_0 + (2 + 1) x_1.
TEST_F(TorchScriptTest, GradientsReachTheImages) {
  save(kLinear);
  const auto f = load();
  const torch::Tensor images = torch::ones({2, 2, 1, 1}).requires_grad_(true);
  const auto gradient = torch::autograd::grad({f(images).sum()}, {images})[0];
  EXPECT_TRUE(gradient.flatten(1).equal(torch::tensor({{1.0f, 3.0f}, {1.0f, 3.0f}})));
  EXPECT_FALSE(f(torch::ones({2, 2, 1, 1})).requires_grad());
}

TEST_F(TorchScriptTest, RunsTheModule) {
  save(kLinear);
  const auto f = load();
  const torch::Tensor images = torch::tensor({1.0f, 10.0f, 3.0f, 0.0f}).view({2, 2, 1, 1});
  EXPECT_TRUE(torch::equal(f(images), torch::tensor({{21.0f, 10.0f}, {3.0f, 0.0f}})));
}

TEST_F(TorchScriptTest, GivesFloatsWithoutGradients) {
  save("def forward(self, x):\n    return (x.flatten(1) * self.weight[0]).double()\n");
  const torch::Tensor logits = load()(torch::ones({1, 2, 1, 1}));
  EXPECT_EQ(logits.scalar_type(), torch::kFloat);
  EXPECT_FALSE(logits.requires_grad());
}

// As floats, the first image's logits are equal, and the lowest class would win.
TEST_F(TorchScriptTest, KeepsTheAnswersOfLogitsInDouble) {
  save("def forward(self, x):\n    return x.flatten(1).double() - 1000000000.0\n");
  const torch::Tensor images = torch::tensor({0.25f, 0.5f, 0.5f, 0.25f}).view({2, 2, 1, 1});
  EXPECT_TRUE(torch::equal(load()(images), torch::tensor({{-0.25f, 0.0f}, {-1e9f, -1e9f}})));
  save("def forward(self, x):\n    return (4 * x).flatten(1).long() + 10000000000\n");
  EXPECT_TRUE(torch::equal(load()(images), torch::tensor({{-1.0f, 0.0f}, {1e10f, 1e10f}})));
  save("def forward(self, x):\n    return x.flatten(1).double() * 1e-50\n");
  EXPECT_EQ(load()(images).argmax(1)[0].item<int64_t>(), 1);
}

TEST_F(TorchScriptTest, IsAClassifierOfArrays) {
  save(kLinear);
  const BaseClassifier f = torch_script_classifier(path_, {2, 1, 1});
  EXPECT_EQ(f.classes, 2);
  EXPECT_EQ(f.description.rfind("cpu/fp32/torchscriptx192/", 0), 0U) << f.description;
  EXPECT_NE(f.description.find("/torch-"), std::string::npos) << f.description;
  check_is_function(f, {2, 1, 1});
  const Array logits = f.make()(Array::of({2, 2, 1, 1}, {1, 10, 3, 0}));
  EXPECT_TRUE(same_bits(logits, Array::of({2, 2}, {21, 10, 3, 0})));
}

// The gradient of 5 times the first logit and 7 times the second of each image.
TEST_F(TorchScriptTest, IsDifferentiable) {
  save(kLinear);
  const DifferentiableClassifier f = torch_script_gradients(path_);
  const Array logits = f.logits(Array::of({2, 2, 1, 1}, {1, 10, 3, 0}));
  EXPECT_TRUE(same_bits(logits, Array::of({2, 2}, {21, 10, 3, 0})));
  const Array gradient = f.backward(Array::of({2, 2}, {5, 0, 0, 7}));
  EXPECT_TRUE(same_bits(gradient, Array::of({2, 2, 1, 1}, {5, 10, 0, 7})));
}

TEST_F(TorchScriptTest, RefusesAnOutputThatIsNotOneRowAnImage) {
  save("def forward(self, x):\n    return x.flatten(1).sum(0)\n");
  EXPECT_EQ(refusal([&] {
              torch_script_classifier(path_, {2, 1, 1});
            }),
            path_ + ": gives an output of shape [2] for 192 images, expected [192, classes]");
}

TEST_F(TorchScriptTest, RefusesAModuleInTrainingMode) {
  save(kLinear, /*training=*/true);
  EXPECT_EQ(load_refusal(), path_ + ": saved in training mode; call .eval() before torch.jit.save");
}

TEST_F(TorchScriptTest, RefusesAModuleWithAPartInTrainingMode) {
  torch::jit::Module part("Part"), whole("Whole");
  part.define("def forward(self, x):\n    return x\n");
  part.register_attribute("training", c10::BoolType::get(), true);
  whole.register_module("part", part);
  whole.define("def forward(self, x):\n    return self.part.forward(x)\n");
  whole.register_attribute("training", c10::BoolType::get(), false);
  whole.save(path_);
  EXPECT_EQ(load_refusal(), path_ + ": saved in training mode; call .eval() before torch.jit.save");
}

TEST_F(TorchScriptTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(load_refusal(), path_ + ": no such file");
  fs::create_directories(path_);
  EXPECT_EQ(load_refusal(), path_ + ": no such file");
}

TEST_F(TorchScriptTest, RefusesFilesThatAreNoModule) {
  save(kLinear);
  const std::string good = read_file(path_);
  for (const std::string& bytes :
       {std::string(), std::string("text"), good.substr(0, good.size() / 2)}) {
    write_file(path_, bytes);
    expect_one_line(load_refusal(), path_ + ": not a TorchScript module", "");
  }
}

TEST_F(TorchScriptTest, RefusesAnOutputThatIsNoTensor) {
  save("def forward(self, x):\n    return (x, x)\n");
  EXPECT_EQ(run_refusal({1, 2, 1, 1}), path_ + ": gives no tensor");
}

TEST_F(TorchScriptTest, SaysWhyTheModuleFailsOnImages) {
  save(kLinear);
  expect_one_line(run_refusal({4, 3, 1, 1}), path_ + ": fails on images [4, 3, 1, 1]: ",
                  "mat1 and mat2 shapes cannot be multiplied (4x3 and 2x2)");
}

TEST_F(TorchScriptTest, SaysWhatTheModuleRaises) {
  save("def forward(self, x):\n    assert x.size(1) == 2, \"two channels only\"\n    return x\n");
  expect_one_line(run_refusal({1, 3, 1, 1}),
                  path_ + ": fails on images [1, 3, 1, 1]: ", "two channels only");
}

TEST_F(TorchScriptTest, RefusesAModuleWithoutForward) {
  save("def other(self, x):\n    return x\n");
  expect_one_line(run_refusal({1, 2, 1, 1}), path_ + ": fails on images [1, 2, 1, 1]: ", "forward");
}

// Modules often normalise in place; the caller's images are not theirs.
TEST_F(TorchScriptTest, AModuleMayOverwriteItsArgument) {
  save(R"(
def forward(self, x):
    x.sub_(0.5)
    return torch.matmul(x.flatten(1), self.weight)
)");
  const auto f = load();
  const torch::Tensor images = torch::ones({1, 1, 1, 2});
  const torch::Tensor first = f(images);
  EXPECT_TRUE(torch::equal(images, torch::ones({1, 1, 1, 2})));
  EXPECT_TRUE(torch::equal(f(images), first));
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(TorchScriptTest, NeedsLibTorch) { GTEST_SKIP() << "built without LibTorch"; }
#endif
