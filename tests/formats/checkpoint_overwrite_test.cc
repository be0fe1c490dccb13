// Checkpoints that are overwritten: whenever their writer dies, a reader gets one of the two
// states, and the next writer removes what the dead one left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "graph/formats/checkpoint.h"
#include "graph/formats/checkpoint_overwrite.h"
#include "graph/formats/checkpoint_v1.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

void save(const std::string& prefix, float value, int64_t elements = 3) {
  Tensor w(f32, {elements});
  std::fill_n(w.data<float>(), elements, value);
  CheckpointWriter writer(prefix);
  writer.add("w", w);
  writer.add("fixed", Tensor::scalar(7.0f));
  writer.finish();
}

float restored(const std::string& prefix) {
  const CheckpointReader reader(prefix);
  reader.verify();
  EXPECT_EQ(reader.read("fixed").item<float>(), 7);
  const Tensor w = reader.read("w");
  const auto elements = w.span<float>();
  for (const float element : elements) EXPECT_EQ(element, elements[0]);
  return elements[0];
}

class CheckpointOverwrite : public testing::Test {
 protected:
  // Checkpoints 1 and 2 are complete; `m` is in the given state of overwriting 1 with 2.
  CheckpointOverwrite() {
    save(directory / "one", 1);
    save(directory / "two", 2);
  }
  void copy(const std::string& from, const std::string& to) {
    fs::remove(directory / to);  // not into a file that has other names
    fs::copy_file(directory / from, directory / to);
  }
  void make_state(const std::string& data, const std::string& index, bool has_kept) {
    for (const std::string& name : names_in(directory.path()))
      if (name.starts_with("m.")) fs::remove(directory / name);
    if (has_kept) {
      copy("one.data-00000-of-00001", "m.before-overwrite.data-00000-of-00001");
      copy("one.index", "m.before-overwrite.index");
    }
    if (!data.empty()) copy(data + ".data-00000-of-00001", "m.data-00000-of-00001");
    if (!index.empty()) copy(index + ".index", "m.index");
  }
  std::vector<std::string> files_of_m() {
    std::vector<std::string> out;
    for (const std::string& name : names_in(directory.path()))
      if (name.starts_with("m")) out.push_back(name);
    return out;
  }

  const ScratchDirectory directory;
  const std::string m = directory / "m";
};

TEST_F(CheckpointOverwrite, EveryIntermediateStateRestoresOldOrNew) {
  const struct {
    const char *data, *index;
    float wanted;
    bool is_said;
  } states[] = {
      {"one", "one", 1, true},   // before the renames; as files of their own, not links
      {"two", "one", 1, true},   // between them
      {"two", "two", 2, false},  // behind them
      {"one", "two", 1, true},   // the machine stopped, and the disk had only the second
      {"", "one", 1, true},     {"two", "", 1, true}, {"", "", 1, true},
  };
  for (const auto& state : states) {
    SCOPED_TRACE(concat("data ", state.data, ", index ", state.index));
    make_state(state.data, state.index, true);
    testing::internal::CaptureStderr();
    EXPECT_EQ(restored(m), state.wanted);
    const std::string said = testing::internal::GetCapturedStderr();
    const char* wanted = state.is_said ? "died while it overwrote an older one" : "";
    EXPECT_THAT(said, HasSubstr(wanted));
    EXPECT_EQ(said.empty(), !state.is_said) << said;
    // The next save starts from here, and may die as well.
    keep_checkpoint(m, any_file);
    EXPECT_EQ(restored(directory / "m.before-overwrite"), state.wanted);
    save(m, 3);
    EXPECT_EQ(restored(m), 3);
    EXPECT_THAT(files_of_m(), UnorderedElementsAre("m.data-00000-of-00001", "m.index"));
  }
}

TEST_F(CheckpointOverwrite, MismatchedPairWithoutABackupIsDataLoss) {
  make_state("two", "one", false);
  expect_error_with(Code::data_loss, "the checksum is wrong", [&] { restored(m); });
  save(m, 3);
  EXPECT_EQ(restored(m), 3);
}

TEST_F(CheckpointOverwrite, RemovedCheckpointsStayRemoved) {
  make_state("two", "one", true);
  remove_checkpoint(m);
  EXPECT_THAT(files_of_m(), IsEmpty());
}

TEST_F(CheckpointOverwrite, MergeRestoresOldOrNew) {
  save(directory / "part1", 4);
  make_state("one", "one", false);
  // merge_checkpoints() leaves this state when it dies after its first rename.
  keep_checkpoint(m, any_file);
  copy("part1.data-00000-of-00001", "m.data-00000-of-00001");
  EXPECT_EQ(restored(m), 1);
  merge_checkpoints({directory / "part1"}, m, false);
  EXPECT_EQ(restored(m), 4);
  EXPECT_THAT(files_of_m(), UnorderedElementsAre("m.data-00000-of-00001", "m.index"));
}

TEST_F(CheckpointOverwrite, RemovesTemporaryFilesOfDeadWritersOnly) {
  save(m, 1);
  const std::string dead = m + ".data-00000-of-00001.tempstate123",
                    dead_index = m + ".index.tempstate45",
                    other = directory / "m-2.index.tempstate6";
  for (const std::string& path : {dead, dead_index, other}) replace_file(path, "torn");
  CheckpointWriter living(m);
  living.add("w", Tensor::of<float>({1}, {5}));
  living.add("fixed", Tensor::scalar(7.0f));
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_FALSE(fs::exists(dead_index));
  EXPECT_TRUE(fs::exists(other)) << "of another prefix";
  save(m, 2);
  living.finish();
  EXPECT_EQ(restored(m), 5);
  fs::remove(other);
  EXPECT_THAT(files_of_m(), UnorderedElementsAre("m.data-00000-of-00001", "m.index"));

  const std::string v1 = directory / "m1";
  replace_file(v1 + ".tempstate7", "torn");
  V1CheckpointWriter writer(v1);
  writer.add("w", {1}, TensorSlice::whole(1), Tensor::of<float>({1}, {5}));
  writer.finish();
  EXPECT_FALSE(fs::exists(v1 + ".tempstate7"));
}

// 2 MB, written over and over; the writer is killed at any instant.
TEST_F(CheckpointOverwrite, KilledWritersLeaveACompleteState) {
  constexpr int64_t elements = 1 << 19;
  save(m, 0, elements);
  float last = 0;
  for (int kill_after_us = 0; kill_after_us < 40'000; kill_after_us += 1'300) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (float value = last + 1;; ++value) save(m, value, elements);
    }
    ::usleep(static_cast<useconds_t>(kill_after_us));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    testing::internal::CaptureStderr();
    const float now = restored(m);
    testing::internal::GetCapturedStderr();
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_GT(last, 0);
  save(m, last + 1);
  EXPECT_THAT(files_of_m(), UnorderedElementsAre("m.data-00000-of-00001", "m.index"));
}

}  // namespace
}  // namespace leat
