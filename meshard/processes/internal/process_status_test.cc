#include "meshard/processes/internal/process_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;
using testing::IsEmpty;
using testing::SizeIs;

constexpr milliseconds kLong{5000}, kShort{500}, kStuckAge{2000};

ProcessStatus::Wait wait(const char* channel, std::uint64_t number, std::vector<int> ranks,
                         milliseconds age = kLong) {
  return {.what = channel, .steps = {{channel, number, std::move(ranks)}}, .age = age};
}

ProcessStatus running(std::uint64_t launches = 0) { return {.reached = {{"launches", launches}}}; }

// Its devices wait in a collective, for which all have to come to `launches`.
ProcessStatus in_collective(std::uint64_t launches, std::vector<int> ranks) {
  ProcessStatus status = running(launches);
  status.program = {{.what = "devices", .steps = {}, .age = kLong}};
  status.others = {wait("launches", launches, std::move(ranks))};
  return status;
}

std::vector<StuckWait> stuck(std::vector<std::optional<ProcessStatus>> processes) {
  return stuck_waits(processes, kStuckAge);
}

TEST(ProcessStatus, IsReadAsWritten) {
  ProcessStatus status = in_collective(7, {0, 2});
  status.has_ended = true;
  status.others.push_back(wait("steps", 1, {}));
  std::string bytes = status.to_bytes();
  std::optional<ProcessStatus> read = ProcessStatus::from_bytes(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_bytes(), bytes);
  EXPECT_TRUE(read->has_ended);
  EXPECT_EQ(read->others[0].steps[0].ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(read->reached[0].second, 7u);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ProcessStatus::from_bytes(bytes.substr(0, size))) << size;
}

TEST(StuckWaits, OneThatHasEndedIsAwaited) {
  ProcessStatus ended{.has_ended = true, .reached = {{"launches", 8}}};
  auto found = stuck({ended, in_collective(9, {0, 1})});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(found[0].awaited, 0);
  EXPECT_EQ(found[0].wait.what, "launches");
  // It has taken its part in what is waited for.
  ended.reached[0].second = 9;
  EXPECT_THAT(stuck({ended, in_collective(9, {0, 1})}), IsEmpty());
  // It has nothing to do with it.
  ended.reached[0].second = 1;
  EXPECT_THAT(stuck({ended, in_collective(9, {1, 2}), running()}), IsEmpty());
}

TEST(StuckWaits, OneThatComputesMayCome) {
  EXPECT_THAT(stuck({running(), in_collective(9, {0, 1})}), IsEmpty());
  // It waits for its own devices, which compute.
  ProcessStatus computes = running();
  computes.program = {{.what = "devices", .steps = {}, .age = kLong}};
  EXPECT_THAT(stuck({computes, in_collective(9, {0, 1})}), IsEmpty());
  EXPECT_THAT(stuck({std::nullopt, in_collective(9, {0, 1})}), IsEmpty());
}

TEST(StuckWaits, ProcessesThatWaitForEachOther) {
  ProcessStatus alone = running(6);
  alone.program = {wait("steps", 1, {0, 1})};
  auto found = stuck({alone, in_collective(7, {0, 1})});
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].awaited, 1);
  EXPECT_EQ(found[1].awaited, 0);
  // One of the waits is young.
  alone.program[0].age = kShort;
  EXPECT_THAT(stuck({alone, in_collective(7, {0, 1})}), IsEmpty());
  // A third process may still come.
  alone.program[0].age = kLong;
  EXPECT_THAT(stuck({alone, in_collective(6, {0, 1, 2}), running()}), IsEmpty());
}

TEST(StuckWaits, AnotherThreadMayGoOn) {
  ProcessStatus alone = running(6);
  alone.program = {wait("steps", 1, {0, 1}), wait("value/k", 1, {2})};
  EXPECT_THAT(stuck({alone, in_collective(7, {0, 1}), running()}), IsEmpty());
  EXPECT_THAT(stuck({alone, in_collective(7, {0, 1}), {ProcessStatus{.has_ended = true}}}),
              SizeIs(2));
}

TEST(StuckWaits, ACircleOfThree) {
  auto waits = [](const char* channel, int for_rank) {
    ProcessStatus status;
    status.program = {wait(channel, 1, {for_rank})};
    return status;
  };
  EXPECT_THAT(stuck({waits("a", 1), waits("b", 2), waits("c", 0)}), SizeIs(3));
  EXPECT_THAT(stuck({waits("a", 1), waits("b", 2), running()}), IsEmpty());
}

TEST(StuckWaits, AllHaveComeToTheSameBarrier) {
  ProcessStatus waits;
  waits.program = {wait("barrier/a", 1, {0, 1})};
  EXPECT_THAT(stuck({waits, waits}), IsEmpty());
  ProcessStatus other;
  other.program = {wait("barrier/b", 1, {0, 1})};
  EXPECT_THAT(stuck({waits, other}), SizeIs(2));
}

TEST(StuckWaits, AnyProcessMayDoIt) {
  ProcessStatus waits;
  waits.program = {wait("value/k", 1, {})};
  EXPECT_THAT(stuck({waits, ProcessStatus{.has_ended = true}, running()}), IsEmpty());
  EXPECT_THAT(stuck({waits, ProcessStatus{.has_ended = true}}), SizeIs(1));
  EXPECT_THAT(stuck({waits, waits}), SizeIs(2));
}

TEST(StuckWaits, ASaveInTheBackground) {
  // Process 0 trains on while its save waits for process 1, which waits for a collective.
  ProcessStatus saves = running(3);
  saves.others = {wait("save", 1, {0, 1})};
  EXPECT_THAT(stuck({saves, in_collective(4, {0, 1})}), IsEmpty());
  // It waits for the save.
  saves.program = {{.what = "checkpoints", .steps = {}, .age = kLong}};
  EXPECT_THAT(stuck({saves, in_collective(4, {0, 1})}), SizeIs(2));
}

}  // namespace
}  // namespace meshard::internal
