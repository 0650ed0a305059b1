#include "meshard/processes/internal/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/processes.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// A coordinator with members that talk to it, in simulated time.
class SimulatedRun {
 public:
  explicit SimulatedRun(int size) : size_(size), coordinator(size, {}, now) {}

  Message join_message(int rank, int count = -1) const {
    return {.kind = MessageKind::kJoin,
            .request = 1,
            .number = 10000,
            .value = to_packed(
                JoinRequest{cat("host", rank), 100 + rank, 1, count < 0 ? size_ : count})};
  }
  void join(int rank) {
    EXPECT_EQ(coordinator.connected(rank, now), "");
    EXPECT_TRUE(coordinator.receive(rank, join_message(rank), now));
  }
  void join_all() {
    for (int rank = 0; rank < size_; ++rank) join(rank);
    coordinator.take_outgoing();
  }
  void send(int rank, Message message) {
    EXPECT_TRUE(coordinator.receive(rank, std::move(message), now));
  }
  /// Time passes; the members of `alive` give signs of life.
  void pass(milliseconds time, const std::vector<int>& alive) {
    for (milliseconds done{0}; done < time; done += milliseconds(250)) {
      now += milliseconds(250);
      for (int rank : alive) send(rank, {.kind = MessageKind::kBeat, .name = cat("work ", rank)});
      coordinator.advance(now);
    }
  }
  /// What was sent: `1: reply 7 ok value`.
  std::vector<std::string> sent() {
    std::vector<std::string> texts;
    for (const auto& [rank, message] : coordinator.take_outgoing()) {
      std::string text =
          message.kind == MessageKind::kLost
              ? from_packed<ProcessLoss>(message.value, "processes").value().to_string()
              : cat("reply ", message.request, ' ', message.number, ' ', message.name, '|',
                    message.value);
      texts.push_back(cat(rank, ": ", text));
    }
    return texts;
  }

 private:
  int size_;

 public:
  Coordinator::Time now{};
  Coordinator coordinator;
};

TEST(Coordinator, AllLearnTheTableWhenTheLastJoins) {
  SimulatedRun run(2);
  run.join(1);
  EXPECT_THAT(run.sent(), IsEmpty());
  run.join(0);
  auto messages = run.coordinator.take_outgoing();
  ASSERT_EQ(messages.size(), 2u);
  auto all = from_packed<std::vector<ProcessInfo>>(messages[0].second.value, "test").value();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].to_string(), "process 0 (pid 100 on host0)");
  EXPECT_EQ(all[1].to_string(), "process 1 (pid 101 on host1)");
  EXPECT_EQ(all[1].first_device, 1);
  EXPECT_THAT(run.coordinator.others_running(), ElementsAre(1));
}

TEST(Coordinator, JoiningHasALimit) {
  SimulatedRun run(4);
  run.join(0);
  run.join(2);
  run.pass(milliseconds(10000), {0, 2});
  auto sent = run.sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0], "0: reply 1 4 process 1 has not joined\n  process 3 has not joined|");
}

TEST(Coordinator, InvalidJoins) {
  SimulatedRun run(3);
  run.join(1);
  EXPECT_THAT(run.coordinator.connected(1, run.now),
              HasSubstr("process 1 (pid 101 on host1) has already joined"));
  EXPECT_EQ(run.coordinator.connected(2, run.now), "");
  run.send(2, run.join_message(2, 4));
  EXPECT_THAT(run.sent(), ElementsAre(HasSubstr("one of 4 processes, process 0 as one of 3")));
  EXPECT_EQ(run.coordinator.connected(0, run.now), "");
  EXPECT_FALSE(run.coordinator.receive(0, {.kind = MessageKind::kPut, .name = "early"}, run.now));
  EXPECT_FALSE(run.coordinator.receive(0, {.kind = MessageKind::kJoin, .value = "x"}, run.now));
  EXPECT_FALSE(run.coordinator.receive(1, {.kind = MessageKind::kReply}, run.now));
}

TEST(Coordinator, OneThatLeavesBeforeItJoinsMayComeAgain) {
  SimulatedRun run(2);
  EXPECT_EQ(run.coordinator.connected(1, run.now), "");
  run.coordinator.closed(1, run.now);
  run.join(1);
  run.join(0);
  EXPECT_EQ(run.sent().size(), 2u);
}

TEST(Coordinator, Store) {
  SimulatedRun run(2);
  run.join_all();
  run.send(0, {.kind = MessageKind::kPut, .request = 5, .name = "k", .value = "v"});
  run.send(1, {.kind = MessageKind::kGet, .request = 6, .number = 1000, .name = "k"});
  run.send(1, {.kind = MessageKind::kGet, .request = 7, .number = 0, .name = "other"});
  EXPECT_THAT(run.sent(), ElementsAre("0: reply 5 0 |", "1: reply 6 0 |v",
                                      "1: reply 7 5 there is no such key|"));
  run.send(0, {.kind = MessageKind::kPut, .request = 8, .name = "k", .value = "new"});
  run.send(1, {.kind = MessageKind::kGet, .request = 9, .number = 0, .name = "k"});
  EXPECT_THAT(run.sent(), ElementsAre("0: reply 8 0 |", "1: reply 9 0 |new"));
}

TEST(Coordinator, GetsWait) {
  SimulatedRun run(2);
  run.join_all();
  run.send(1, {.kind = MessageKind::kGet, .request = 6, .number = 1000, .name = "k"});
  run.send(1, {.kind = MessageKind::kGet, .request = 7, .number = -1, .name = "k"});
  run.pass(milliseconds(750), {0, 1});
  EXPECT_THAT(run.sent(), IsEmpty());
  run.pass(milliseconds(250), {0, 1});
  EXPECT_THAT(run.sent(), ElementsAre("1: reply 6 4 no process has put it|"));
  run.pass(std::chrono::minutes(10), {0, 1});
  run.send(0, {.kind = MessageKind::kPut, .request = 8, .name = "k", .value = "v"});
  EXPECT_THAT(run.sent(), ElementsAre("1: reply 7 0 |v", "0: reply 8 0 |"));
}

TEST(Coordinator, PublishOnce) {
  SimulatedRun run(3);
  run.join_all();
  run.send(2, {.kind = MessageKind::kPublish, .request = 5, .name = "k", .value = "first"});
  run.send(1, {.kind = MessageKind::kPublish, .request = 5, .name = "k", .value = "first"});
  run.send(0, {.kind = MessageKind::kPublish, .request = 5, .name = "k", .value = "second"});
  EXPECT_THAT(run.sent(), ElementsAre("2: reply 5 0 |", "1: reply 5 0 |",
                                      "0: reply 5 6 process 2 (pid 102 on host2)|first"));
}

TEST(Coordinator, BarriersEndTogetherAndAgain) {
  SimulatedRun run(2);
  run.join_all();
  for (std::uint64_t round = 10; round < 12; ++round) {
    run.send(0, {.kind = MessageKind::kBarrier, .request = round, .number = -1, .name = "b"});
    run.send(1, {.kind = MessageKind::kBarrier, .request = 1, .number = -1, .name = "other"});
    EXPECT_THAT(run.sent(), IsEmpty());
    run.send(1, {.kind = MessageKind::kBarrier, .request = round, .number = -1, .name = "b"});
    EXPECT_THAT(run.sent(),
                ElementsAre(cat("0: reply ", round, " 0 |"), cat("1: reply ", round, " 0 |")));
    run.send(0, {.kind = MessageKind::kBarrier, .request = 1, .number = -1, .name = "other"});
    run.coordinator.take_outgoing();
  }
}

TEST(Coordinator, BarrierNamesTheMissing) {
  SimulatedRun run(3);
  run.join_all();
  for (int rank : {0, 2})
    run.send(rank, {.kind = MessageKind::kBarrier, .request = 4, .number = 1000, .name = "b"});
  run.pass(milliseconds(1000), {0, 1, 2});
  std::string missing = "process 1 (pid 101 on host1); it was last in \"work 1\", 0 s ago|";
  EXPECT_THAT(run.sent(), ElementsAre("0: reply 4 4 " + missing, "2: reply 4 4 " + missing));
}

TEST(Coordinator, BarrierTellsWhoGaveUp) {
  SimulatedRun run(3);
  run.join_all();
  auto enter = [&](int rank, int limit, const char* name) {
    run.send(rank, {.kind = MessageKind::kBarrier, .request = 4, .number = limit, .name = name});
  };
  std::string missing = "process 1 (pid 101 on host1); it was last in \"work 1\", 0 s ago";
  enter(0, 1500, "b");
  enter(2, 2000, "b");
  run.pass(milliseconds(1500), {0, 1, 2});
  EXPECT_THAT(run.sent(), ElementsAre("0: reply 4 4 " + missing + "|"));
  run.pass(milliseconds(500), {0, 1, 2});
  EXPECT_THAT(run.sent(), ElementsAre("2: reply 4 4 process 0 (pid 100 on host0) gave up after "
                                      "1.5 s\n  " +
                                      missing + "|"));
  // Only of this barrier, and not of the next time.
  enter(2, 100, "c");
  run.pass(milliseconds(100), {0, 1, 2});
  EXPECT_THAT(run.sent(), ElementsAre(Not(HasSubstr("gave up"))));
  enter(0, -1, "b");
  enter(1, -1, "b");
  enter(2, -1, "b");
  EXPECT_THAT(run.sent(), SizeIs(3));  // the barrier was reached
  enter(1, 100, "b");
  run.pass(milliseconds(100), {0, 1, 2});
  EXPECT_THAT(run.sent(), ElementsAre(Not(HasSubstr("gave up"))));
}

TEST(Coordinator, OneThreadPerProcessInABarrier) {
  SimulatedRun run(2);
  run.join_all();
  for (int i = 0; i < 2; ++i)
    run.send(0, {.kind = MessageKind::kBarrier, .request = 4, .number = -1, .name = "b"});
  EXPECT_THAT(run.sent(), ElementsAre(HasSubstr("0: reply 4 9 another thread")));
}

TEST(Coordinator, ADeathIsToldAll) {
  SimulatedRun run(4);
  run.join_all();
  run.pass(milliseconds(500), {0, 1, 2, 3});
  run.send(0, {.kind = MessageKind::kBarrier, .request = 4, .number = -1, .name = "b"});
  run.send(2, {.kind = MessageKind::kGet, .request = 5, .number = -1, .name = "k"});
  run.coordinator.closed(1, run.now);
  std::string loss = "process 1 (pid 101 on host1) died; it was last in \"work 1\", 0 s ago";
  EXPECT_THAT(run.sent(),
              ElementsAre("3: " + loss, "2: " + loss, "0: " + loss, "0: reply 4 14 " + loss + "|",
                          "2: reply 5 14 " + loss + "|"));
  run.send(3, {.kind = MessageKind::kBarrier, .request = 6, .number = -1, .name = "b"});
  EXPECT_THAT(run.sent(), ElementsAre("3: reply 6 14 " + loss + "|"));
  EXPECT_THAT(run.coordinator.others_running(), ElementsAre(2, 3));
}

TEST(Coordinator, SilenceIsALoss) {
  SimulatedRun run(3);
  run.join_all();
  run.pass(milliseconds(3500), {0, 1});
  EXPECT_THAT(run.sent(), IsEmpty());
  run.pass(milliseconds(250), {0, 1});
  // Process 2 will read it if it continues.
  std::string loss = ": process 2 (pid 102 on host2) does not run";
  EXPECT_THAT(run.sent(),
              ElementsAre(HasSubstr("2" + loss), HasSubstr("1" + loss), HasSubstr("0" + loss)));
}

TEST(Coordinator, OwnSilenceIsNotALossOfOthers) {
  SimulatedRun run(3);
  run.join_all();
  run.now += std::chrono::hours(1);  // everything was suspended
  run.coordinator.advance(run.now);
  EXPECT_THAT(run.sent(), IsEmpty());
  run.pass(milliseconds(4000), {0, 1, 2});
  EXPECT_THAT(run.sent(), IsEmpty());
}

TEST(Coordinator, NormalEndsAreNoLoss) {
  SimulatedRun run(3);
  run.join_all();
  run.send(0, {.kind = MessageKind::kBarrier, .request = 4, .number = -1, .name = "b"});
  run.send(1, {.kind = MessageKind::kGet, .request = 5, .number = -1, .name = "k"});
  run.send(2, {.kind = MessageKind::kBye, .request = 9});
  run.coordinator.closed(2, run.now);
  EXPECT_THAT(run.sent(), ElementsAre("2: reply 9 0 |",
                                      "0: reply 4 14 process 2 (pid 102 on host2) has ended|"));
  run.pass(milliseconds(5000), {0, 1});
  EXPECT_THAT(run.sent(), IsEmpty());
  EXPECT_THAT(run.coordinator.others_running(), ElementsAre(1));
}

TEST(Coordinator, WaitsForOneThatHasEndedAreALoss) {
  SimulatedRun run(3);
  run.join_all();
  ProcessStatus ended{.has_ended = true};
  auto beat = [&](milliseconds age) {
    run.now += milliseconds(250);
    ProcessStatus waits;
    waits.program = {{.what = "train at x.cc:3", .steps = {{"launches", 2, {0, 1}}}, .age = age}};
    run.send(0, {.kind = MessageKind::kBeat, .name = "launch 1", .value = ended.to_bytes()});
    run.send(1, {.kind = MessageKind::kBeat, .name = "launch 2", .value = waits.to_bytes()});
    run.send(2, {.kind = MessageKind::kBeat, .name = "work"});
    run.coordinator.advance(run.now);
  };
  // Young, and the beats of the first second after the end may mention waits that have ended.
  for (int age : {5000, 5250, 5500, 5750, 1000, 1900}) {
    beat(milliseconds(age));
    EXPECT_THAT(run.sent(), IsEmpty());
  }
  beat(milliseconds(2100));
  std::string loss =
      "process 0 (pid 100 on host0) has ended its main program normally, and others wait for it; "
      "it "
      "was last in \"launch 1\", 0 s ago\n  process 1 (pid 101 on host1) waits for process 0 in "
      "\"train at x.cc:3\", for 2.1 s";
  EXPECT_THAT(run.sent(), ElementsAre("2: " + loss, "1: " + loss, "0: " + loss));
  beat(milliseconds(2400));
  EXPECT_THAT(run.sent(), IsEmpty());  // once
}

TEST(Coordinator, ABarrierCannotBeReachedAfterTheEndOfAProgram) {
  SimulatedRun run(2);
  run.join_all();
  run.send(0, {.kind = MessageKind::kBarrier, .request = 4, .number = -1, .name = "b"});
  run.send(1, {.kind = MessageKind::kBeat,
               .name = "launch 3",
               .value = ProcessStatus{.has_ended = true}.to_bytes()});
  EXPECT_THAT(run.sent(),
              ElementsAre("0: reply 4 14 process 1 (pid 101 on host1) has ended; it was "
                          "last in \"launch 3\"|"));
}

TEST(Coordinator, FailedEndsAreALoss) {
  SimulatedRun run(3);
  run.join_all();
  run.send(0, {.kind = MessageKind::kBye, .request = 9, .number = 3});
  EXPECT_THAT(run.sent(),
              ElementsAre("0: reply 9 0 |", "2: process 0 (pid 100 on host0) ended with status 3",
                          "1: process 0 (pid 100 on host0) ended with status 3"));
}

}  // namespace
}  // namespace meshard::internal
