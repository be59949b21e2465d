// Several models as one: what is certified, its identity, and what is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/jobs/dry_run.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/identities.h"
#include "tests/jobs/job_folder.h"
#include "tests/member_models.h"
#include "tests/nearest_mean.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class EnsembleTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    write_nearest_mean(file("model"));
    model_ = load_model(file("model"));
    write_member(model_, file("a"), 1, 0.02f);
    write_member(model_, file("b"), 1, -0.02f);
    write_member(model_, file("c"), 2, 0.02f);
  }

  std::string file(const std::string& name) const { return path(name + ".safetensors").string(); }
  std::vector<std::string> files(const std::vector<std::string>& names) const {
    std::vector<std::string> found;
    for (const std::string& name : names) found.push_back(file(name));
    return found;
  }

  // Five images. The table is called after the models.
  fs::path certify(const std::vector<std::string>& names, const Overrides& more = {},
                   bool resume = false) {
    jobs::CertifyArguments a{.path = file(names[0]), .resume = resume};
    a.with = files({names.begin() + 1, names.end()});
    a.out = path(fmt::format("{}.tsv", fmt::join(names, "-"))).string();
    return certify_as(a, more);
  }
  fs::path certify_as(const jobs::CertifyArguments& a, const Overrides& more = {}) {
    Overrides options = {{"data.name", "shapes"}, {"certify.n", "1000"}, {"certify.every", "400"}};
    options.insert(options.end(), more.begin(), more.end());
    return jobs::certify(a, options, context_);
  }

  std::vector<std::string> rows(const fs::path& table) const { return rows_without_times(table); }

  Model model_;
};

// The mean of W + D and W - D is W, up to the rounding of sums of 3072 products: only copies that
// are that near to a tie may vote otherwise.
TEST_F(EnsembleTest, OppositeChangesOfALinearModelCancel) {
  const Overrides seed = {{"seed", "5"}, {"certify.every", "100"}};
  const auto alone = read_certificates(certify({"model"}, seed));
  const auto together = read_certificates(certify({"a", "b"}, seed));
  const auto changed = read_certificates(certify({"a"}, seed));
  int64_t differences = 0, differences_of_one = 0;
  for (size_t i = 0; i < alone.size(); ++i) {
    const auto top = [i](const auto& table) { return table[i].certificate.counts.top; };
    differences += std::abs(top(together) - top(alone));
    differences_of_one += std::abs(top(changed) - top(alone));
  }
  EXPECT_LE(differences, 4);
  EXPECT_GT(differences_of_one, 40);  // the test could fail
}

TEST_F(EnsembleTest, TheOrderOfMembersDoesNotCount) {
  const fs::path abc = certify({"a", "b", "c"}), cab = certify({"c", "a", "b"});
  EXPECT_EQ(read_identity(abc).difference(read_identity(cab)), "");
  EXPECT_EQ(rows(abc), rows(cab));
  EXPECT_TRUE(read_identity(abc).base->ends_with("/mean-of-3"));
}

TEST_F(EnsembleTest, TheIdentityCoversAllMembers) {
  const fs::path table = certify({"a", "b"});
  const CertificateIdentity ab = read_identity(table), a = read_identity(certify({"a"})),
                            b = read_identity(certify({"b"})),
                            abc = read_identity(certify({"a", "b", "c"}));
  std::vector<std::string> members = {*a.model_sha256, *b.model_sha256};
  std::sort(members.begin(), members.end());
  EXPECT_EQ(ab.members, members);
  EXPECT_EQ(ab.model_sha256, digest_members(members));
  EXPECT_EQ(ab.seed, derive_seed(0, *ab.model_sha256, *ab.data_sha256));
  EXPECT_EQ(a.members, std::nullopt);
  for (const CertificateIdentity& other : {a, b, abc}) {
    EXPECT_NE(ab.difference(other), "");
    EXPECT_NE(ab.seed, other.seed);
    EXPECT_NE(ab.subject, other.subject);
    EXPECT_FALSE(about_the_same(ab, other));
  }
  const nlohmann::json sidecar = read_sidecar(table);
  EXPECT_EQ(sidecar["members"].size(), 2U);
  EXPECT_FALSE(read_sidecar(path("a.tsv")).contains("members"));
}

TEST_F(EnsembleTest, ResumesItsOwnTableOnly) {
  const fs::path table = certify({"a", "b"});
  const std::vector<std::string> whole = rows(table);
  const std::string text = read_file(table);
  write_file(table, text.substr(0, text.size() / 2));
  certify({"a", "b"}, {}, /*resume=*/true);
  EXPECT_EQ(rows(table), whole);
  const auto resume = [&](const std::vector<std::string>& with) {
    return [=, this] {
      certify_as({.path = file("a"), .out = table.string(), .resume = true, .with = files(with)});
    };
  };
  expect_error(resume({}), "holds another measurement");
  expect_error(resume({"c"}), "holds another measurement");
  expect_error(resume({"b", "c"}), "holds another measurement");
  EXPECT_EQ(rows(table), whole);
}

TEST_F(EnsembleTest, ShardsOfOtherMembersAreNotMerged) {
  const auto shard = [&](const std::string& number, const std::string& member) {
    const std::string out = path(number + member + ".tsv").string();
    certify_as({.path = file("a"), .out = out, .shard = number + "/2", .with = files({member})});
    return out;
  };
  const std::string first = shard("1", "b"), second = shard("2", "b"), other = shard("2", "c");
  expect_error([&] { jobs::merge({first, other}, path("m.tsv")); }, "they differ in");
  jobs::merge({first, second}, path("m.tsv"));
  EXPECT_EQ(rows(path("m.tsv")), rows(certify({"a", "b"})));
  EXPECT_EQ(read_identity(path("m.tsv")).members, read_identity(first).members);
}

TEST_F(EnsembleTest, RecertifyAndVerifyKeepTheMembers) {
  const fs::path table = certify({"a", "b"});
  const fs::path again = jobs::recertify({.table = table.string(), .alpha = 0.01});
  EXPECT_EQ(read_identity(again).members, read_identity(table).members);
  for (const fs::path& one : {table, again}) {
    const auto found =
        jobs::verify({.table = one.string(), .images = 3}, {{"seed", "7"}}, context_);
    EXPECT_EQ(found.images.size(), 3U);
    EXPECT_TRUE(found.plausible());
  }
}

TEST_F(EnsembleTest, VerifyFindsTheMembersOrSaysWhatIsMissing) {
  const fs::path table = certify({"a", "b"});
  const auto verify = [&](const std::string& model, const std::vector<std::string>& with) {
    return jobs::verify({.table = table.string(), .images = 2, .model = model, .with = files(with)},
                        {{"seed", "7"}}, context_);
  };
  EXPECT_TRUE(verify(file("b"), {"a"}).plausible());
  expect_error([&] { verify(file("a"), {}); }, "is about 2 models as one, 1 given");
  expect_error([&] { verify(file("a"), {"b", "c"}); }, "is about 2 models as one, 3 given");
  expect_error([&] { verify(file("a"), {"c"}); }, "c.safetensors, with SHA-256");
  expect_error([&] { verify("", {"b"}); }, "--with: give --model too");
  fs::rename(file("b"), file("moved"));
  expect_error([&] { verify("", {}); }, "b.safetensors is not here; give all of them by --model");
  EXPECT_TRUE(verify(file("a"), {"moved"}).plausible());
  const std::string one = certify({"a"}).string();
  expect_error(
      [&] { jobs::verify({.table = one, .model = file("a"), .with = files({"c"})}, {}, context_); },
      "is about one model; leave out --with");
}

TEST_F(EnsembleTest, PredictsByTheMean) {
  const Overrides options = {{"data.name", "shapes"}, {"seed", "3"}};
  const auto votes = [&](const std::string& model, const std::vector<std::string>& with) {
    jobs::PredictArguments a{.path = file(model), .images = {"0", "1"}, .n = 500};
    a.with = files(with);
    const std::vector<jobs::Answer> answers = jobs::predict(a, options, context_);
    EXPECT_EQ(answers.size(), 2U);
    return answers[0].votes;
  };
  const std::vector<int64_t> alone = votes("model", {}), together = votes("a", {"b"});
  ASSERT_EQ(together.size(), alone.size());
  for (size_t c = 0; c < alone.size(); ++c) EXPECT_LE(std::abs(together[c] - alone[c]), 2) << c;
  EXPECT_EQ(votes("b", {"a"}), together);
  EXPECT_NE(votes("a", {}), alone);
  // A table of one model says nothing of several.
  certify_as({.path = file("a")});
  EXPECT_EQ(votes("a", {"b"}), together);
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(EnsembleTest, ATableNeedsAPlaceOfItsOwn) {
  const auto with_b = [&](const std::string& out) {
    return [=, this] { certify_as({.path = file("a"), .out = out, .with = files({"b"})}); };
  };
  expect_error(with_b(""), "--with: give --out");
  const fs::path run = path("run");
  fs::create_directories(run);
  write_file(run / "provenance.json", R"({"model_sha256": "abc"})");
  expect_error(with_b((run / "certificates.tsv").string()), "this run's own model");
  EXPECT_FALSE(fs::exists(run / "certificates.tsv"));
  EXPECT_FALSE(fs::exists(path("a.certificates.tsv")));
  EXPECT_NO_THROW(with_b((run / "with-b.tsv").string())());
}

TEST_F(EnsembleTest, RefusesMembersThatDifferByName) {
  const auto together = [&](const std::string& other) {
    return [=, this] { certify({"a", other}); };
  };
  const auto write = [&](const std::string& name, const Model& model) {
    write_file(file(name), format_model(model));
  };
  expect_error(together("a"), "a.safetensors: is the model in");
  fs::copy(file("a"), file("copy"));
  expect_error(together("copy"), "copy.safetensors: is the model in");
  Model model = with_other_weights(model_, 9, 0.1f);
  model.sigma = 0.5;
  write("sigma", model);
  expect_error(together("sigma"), "sigma.safetensors: was trained for sigma 0.5, ");
  model.sigma = 0;  // not known
  write("unknown", model);
  EXPECT_NO_THROW(together("unknown")());
  std::swap(model.class_names[2], model.class_names[3]);
  write("order", model);
  expect_error(together("order"), "order.safetensors: its class 2 is \"frame\", which is class 3");
  std::swap(model.class_names[2], model.class_names[3]);
  model.class_names[2] = "another";
  write("names", model);
  expect_error(together("names"), "names.safetensors: class 2 is ");
  model.network.input = {3, 32, 16};
  model.weights[0] = Array({10, 3 * 32 * 16});
  write("shape", model);
  expect_error(together("shape"), "shape.safetensors: ");
  expect_error(together("missing"), "missing.safetensors: no such run or model");
  EXPECT_FALSE(fs::exists(path("a-shape.tsv")));
}

TEST_F(EnsembleTest, ADryRunNeedsNoTable) {
  const auto found = jobs::dry_run_certify({.path = file("a"), .with = files({"b"})},
                                           {{"data.name", "shapes"}}, context_);
  EXPECT_TRUE(found.device.ends_with("/mean-of-2")) << found.device;
}

}  // namespace
}  // namespace fedsmooth
