#include "tests/support/thread_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Runs `body` on one thread for each of `size` communicators.
void on_threads(int size, const std::function<void(ProcessCommunicator&)>& body,
                std::chrono::milliseconds limit = std::chrono::minutes(1)) {
  auto communicators = make_thread_communicators(size, limit);
  std::vector<std::jthread> threads;
  for (auto& communicator : communicators) threads.emplace_back([&] { body(*communicator); });
}

std::vector<int> all_of(const Communicator& c) {
  std::vector<int> group(static_cast<std::size_t>(c.size()));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

TEST(ThreadCommunicator, ReducesInPlaceManyTimes) {
  on_threads(4, [](Communicator& c) {
    for (int step = 0; step < 200; ++step) {
      std::int32_t data[2] = {c.rank() + step, 10 * c.rank()};
      c.all_reduce(all_of(c), Reduction::kSum, DType::i32, data, data, 2).value();
      ASSERT_THAT(data, ElementsAre(6 + 4 * step, 60));
    }
  });
}

TEST(ThreadCommunicator, GathersInTheOrderOfTheGroup) {
  on_threads(3, [](Communicator& c) {
    if (c.rank() == 1) return;  // not in the group
    std::int16_t in = static_cast<std::int16_t>(c.rank()), out[2] = {};
    c.all_gather(std::vector{2, 0}, &in, out, sizeof in).value();
    EXPECT_THAT(out, ElementsAre(2, 0));
  });
}

TEST(ThreadCommunicator, ScattersReducedBlocks) {
  on_threads(2, [](Communicator& c) {
    float in[4] = {1, 2, 3, 4}, out[2] = {};
    c.reduce_scatter(std::vector{1, 0}, Reduction::kProduct, DType::f32, in, out, 2).value();
    EXPECT_EQ(out[0], c.rank() == 1 ? 1 : 9);
    EXPECT_EQ(out[1], c.rank() == 1 ? 4 : 16);
  });
}

TEST(ThreadCommunicator, ExchangesAndBroadcasts) {
  on_threads(3, [](Communicator& c) {
    std::int32_t in[3] = {10 * c.rank(), 10 * c.rank() + 1, 10 * c.rank() + 2}, out[3] = {};
    c.all_to_all(all_of(c), in, out, 4).value();
    EXPECT_THAT(out, ElementsAre(c.rank(), 10 + c.rank(), 20 + c.rank()));
    c.broadcast(all_of(c), 1, in, 12).value();
    EXPECT_THAT(in, ElementsAre(10, 11, 12));
  });
}

TEST(ThreadCommunicator, Permutes) {
  on_threads(3, [](Communicator& c) {
    std::int32_t in = 7 + c.rank(), out = -1;  // 0 -> 1, 1 -> 2; 0 receives nothing
    c.permute(c.rank() < 2 ? c.rank() + 1 : -1, c.rank() - 1, &in, &out, 4).value();
    EXPECT_EQ(out, c.rank() == 0 ? 0 : 6 + c.rank());
    c.permute(c.rank(), c.rank(), &in, &out, 4).value();
    EXPECT_EQ(out, in);
  });
}

TEST(ThreadCommunicator, ExchangesMessagesByTag) {
  on_threads(2, [](ProcessCommunicator& c) {
    const int other = 1 - c.rank(), number = c.rank() + 10;
    const char text[] = "ab";
    int theirs = 0;
    char first = 0, second = 0;
    const OutgoingMessage sent[] = {
        {other, 3, &text[0], 1}, {other, 0, &number, sizeof number}, {other, 3, &text[1], 1}};
    const IncomingMessage received[] = {
        {other, 0, &theirs, sizeof theirs}, {other, 3, &first, 1}, {other, 3, &second, 1}};
    c.exchange(sent, received).value();
    EXPECT_EQ(theirs, other + 10);
    EXPECT_EQ(first, 'a');
    EXPECT_EQ(second, 'b');
    // Two threads of each process, with a tag each.
    std::jthread more([&] {
      for (int i = 0; i < 100; ++i) {
        int got = -1;
        c.exchange(std::vector<OutgoingMessage>{{other, 8, &i, sizeof i}},
                   std::vector<IncomingMessage>{{other, 8, &got, sizeof got}})
            .value();
        EXPECT_EQ(got, i);
      }
    });
    for (int i = 0; i < 100; ++i) {
      int mine = -i, got = 1;
      c.exchange(std::vector<OutgoingMessage>{{other, 7, &mine, sizeof mine}},
                 std::vector<IncomingMessage>{{other, 7, &got, sizeof got}})
          .value();
      EXPECT_EQ(got, -i);
    }
  });
}

TEST(ThreadCommunicator, DifferentCallsAreAnErrorOfAll) {
  on_threads(2, [](Communicator& c) {
    float data[3] = {};
    std::size_t count = c.rank() == 0 ? 2 : 3;
    Result<void> result = c.all_reduce(all_of(c), Reduction::kSum, DType::f32, data, data, count);
    EXPECT_THAT(result.error().message(),
                HasSubstr("process 0 calls all-reduce sum of 2 f32, but process 1 calls all-reduce "
                          "sum of 3 f32"));
  });
}

TEST(ThreadCommunicator, NamesTheMissing) {
  on_threads(
      3,
      [](Communicator& c) {
        if (c.rank() == 1) return;
        char byte = 0, out[3];
        EXPECT_THAT(c.all_gather(all_of(c), &byte, out, 1).error().message(),
                    HasSubstr("no call of the processes 1"));
      },
      std::chrono::milliseconds(100));
}

TEST(ThreadCommunicator, InvalidPairsSendNothing) {
  auto c = make_thread_communicators(2);
  float data[2] = {};
  EXPECT_FALSE(
      c[0]->all_reduce(std::vector{0, 1}, Reduction::kAnd, DType::f32, data, data, 1).ok());
  EXPECT_FALSE(
      c[0]->reduce_scatter(std::vector{0, 1}, Reduction::kMin, DType::c64, data, data, 1).ok());
}

}  // namespace
}  // namespace meshard
