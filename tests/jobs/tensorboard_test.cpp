// What TensorBoard sees of a run: every round once, whatever was killed.
#include "fedsmooth/jobs/pages/tensorboard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>

#include "fedsmooth/base/file.h"
#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/event_file.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

struct Event {
  int64_t step = 0;
  std::map<std::string, float> scalars;
};

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

std::string_view take(std::string_view& bytes, size_t count) {
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

// A field's number and its bytes; of a varint, those of the value.
std::pair<int, std::string> take_field(std::string_view& bytes) {
  const uint64_t key = take_varint(bytes);
  const int number = static_cast<int>(key >> 3);
  switch (key & 7) {
    case 0: {
      const uint64_t value = take_varint(bytes);
      return {number, std::string(reinterpret_cast<const char*>(&value), 8)};
    }
    case 1:
      return {number, std::string(take(bytes, 8))};
    case 5:
      return {number, std::string(take(bytes, 4))};
    default:
      return {number, std::string(take(bytes, take_varint(bytes)))};
  }
}

Event parse_event(std::string_view bytes) {
  Event event;
  while (!bytes.empty()) {
    const auto [number, value] = take_field(bytes);
    if (number == 2) std::memcpy(&event.step, value.data(), 8);
    std::string_view summary = number == 5 ? std::string_view(value) : std::string_view();
    while (!summary.empty()) {
      const std::string one = take_field(summary).second;
      std::string_view fields = one;
      const std::string tag = take_field(fields).second;
      std::memcpy(&event.scalars[tag], take_field(fields).second.data(), 4);
    }
  }
  return event;
}

std::vector<Event> read_events(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  std::string_view bytes = content;
  std::vector<Event> events;
  while (!bytes.empty()) {
    uint64_t length = 0;
    std::memcpy(&length, take(bytes, 8).data(), 8);
    take(bytes, 4);
    const std::string_view event = take(bytes, length);
    uint32_t crc = 0;
    std::memcpy(&crc, take(bytes, 4).data(), 4);
    const uint32_t wanted = crc32c(event);
    EXPECT_EQ(crc, (wanted >> 15 | wanted << 17) + 0xa282ead8);
    events.push_back(parse_event(event));
  }
  return events;
}

class TensorboardTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    experiment_.log.tensorboard = true;
    experiment_.train.checkpoint_every = 2;
  }
  std::filesystem::path events() const {
    return path("run") / "tensorboard" / "events.out.tfevents.0.rounds";
  }

  Experiment experiment_ = small_experiment();
};

TEST_F(TensorboardTest, EveryRoundIsThereOnceAfterAKill) {
  // Ended in round 3, after its row was written: the checkpoint is that of round 2.
  jobs::TrainArguments arguments{experiment_, path("run")};
  arguments.on_round = [](const RoundRow& row) {
    if (row.round == 3) throw Error("killed");
  };
  EXPECT_THROW(jobs::train(arguments, context_), Error);
  std::filesystem::remove(path("run") / "checkpoint" / "state.safetensors");
  std::ofstream(events(), std::ios::app) << "half a record";
  jobs::train({experiment_, path("run"), /*resume=*/true}, context_);

  const std::vector<Event> found = read_events(events());
  const std::vector<RoundRow> rows = read_rounds(path("run") / "rounds.tsv");
  ASSERT_EQ(found.size(), 1 + rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(found[i + 1].step, rows[i].round);
    EXPECT_NEAR(found[i + 1].scalars.at("train/loss"), rows[i].loss, 1e-5);
    EXPECT_NEAR(found[i + 1].scalars.at("attack/perturbation_mean"), rows[i].perturbation_mean,
                1e-4);
  }
}

TEST_F(TensorboardTest, CertifiedAccuracyComesWithTheCertificates) {
  jobs::train({experiment_, path("run")}, context_);
  const auto table = jobs::certify({.path = path("run").string()}, {}, context_);
  const std::vector<Event> found =
      read_events(path("run") / "tensorboard" / "events.out.tfevents.1.certificates");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].step, 3);
  int64_t correct = 0;
  const auto rows = read_certificates(table);
  for (const CertificateRow& row : rows) correct += row.correct();
  EXPECT_FLOAT_EQ(found[1].scalars.at("certified_accuracy/radius_0.00"),
                  static_cast<float>(correct) / static_cast<float>(rows.size()));
  EXPECT_TRUE(found[1].scalars.contains("certified_accuracy/radius_2.00"));
}

TEST_F(TensorboardTest, NothingIsWrittenUnlessAsked) {
  experiment_.log.tensorboard = false;
  jobs::train({experiment_, path("run")}, context_);
  EXPECT_FALSE(std::filesystem::exists(path("run") / "tensorboard"));
}

}  // namespace
}  // namespace fedsmooth
