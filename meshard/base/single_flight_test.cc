#include "meshard/base/single_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace meshard::internal {
namespace {

// A number and its square; a draft has no square yet.
struct Square {
  int number;
  std::optional<int> square = {};
};

struct Squares {
  explicit Squares(std::size_t most = 100) : cache(most) {}

  // All numbers have one of three hashes, so that the predicate decides.
  static std::size_t hash(int number) { return static_cast<std::size_t>(number % 3); }
  std::shared_ptr<const Square> find(int number) {
    return cache.find([&] { return hash(number); },
                      [&](const Square& each) { return each.number == number; });
  }
  std::shared_ptr<const Square> get(int number) {
    return cache.find_or_make(
        hash(number), [&](const Square& each) { return each.number == number; },
        std::make_shared<const Square>(Square{number}),
        [&] {
          ++made;
          if (auto action = std::exchange(while_making, {})) action();
          return std::make_shared<const Square>(Square{number, number * number});
        },
        SingleFlight<Square>::Waits{[] { return std::string("another thread"); },
                                    [] { throw std::logic_error("recursive"); }});
  }

  SingleFlight<Square> cache;
  std::atomic<int> made = 0;
  std::function<void()> while_making;  // the next time only
};

TEST(SingleFlight, MakesEachItemOnce) {
  Squares squares;
  EXPECT_EQ(squares.find(3), nullptr);
  auto nine = squares.get(3);
  EXPECT_EQ(nine->square, 9);
  EXPECT_EQ(squares.get(6)->square, 36) << "the same hash, but another item";
  EXPECT_EQ(squares.get(3), nine);
  EXPECT_EQ(squares.find(3), nine);
  EXPECT_EQ(squares.made, 2);
  EXPECT_EQ(squares.cache.size(), 2u);
  EXPECT_EQ(squares.cache.num_finds(), 2u);
}

TEST(SingleFlight, ThreadsWaitForTheOneThatMakesTheItem) {
  Squares squares;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) threads.emplace_back([&] { EXPECT_EQ(squares.get(5)->square, 25); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(squares.made, 1);
}

TEST(SingleFlight, OthersDoNotWait) {
  Squares squares;
  auto one = squares.get(1);
  std::promise<void> begun, answered;
  squares.while_making = [&] {
    begun.set_value();
    answered.get_future().wait();
  };
  std::thread slow([&] { EXPECT_EQ(squares.get(2)->square, 4); });
  begun.get_future().wait();
  EXPECT_EQ(squares.find(1), one);
  EXPECT_EQ(squares.find(2), nullptr) << "it is not made yet";
  EXPECT_EQ(squares.get(7)->square, 49);
  answered.set_value();
  slow.join();
  EXPECT_EQ(squares.made, 3);
}

TEST(SingleFlight, AFailureIsTriedAgainByOneThatWaited) {
  Squares squares;
  std::promise<void> begun, answered;
  squares.while_making = [&] {
    begun.set_value();
    answered.get_future().wait();
    throw std::runtime_error("on purpose");
  };
  std::thread fails([&] { EXPECT_THROW((void)squares.get(4), std::runtime_error); });
  begun.get_future().wait();
  std::thread waits([&] { EXPECT_EQ(squares.get(4)->square, 16); });
  answered.set_value();
  fails.join();
  waits.join();
  EXPECT_EQ(squares.made, 2);
  EXPECT_EQ(squares.cache.size(), 1u);
}

TEST(SingleFlight, AThreadDoesNotWaitForItself) {
  Squares squares;
  squares.while_making = [&] { (void)squares.get(4); };
  EXPECT_THROW((void)squares.get(4), std::logic_error);
  EXPECT_EQ(squares.get(4)->square, 16) << "the failed attempt left nothing";
}

TEST(SingleFlight, EvictsTheItemThatWasNotUsedForLongest) {
  Squares squares(2);
  auto one = squares.get(1);
  (void)squares.get(2);
  EXPECT_EQ(squares.find(1), one);
  (void)squares.get(3);
  EXPECT_EQ(squares.cache.size(), 2u);
  EXPECT_EQ(squares.find(2), nullptr);
  EXPECT_EQ(squares.find(1), one);
  EXPECT_NE(squares.find(3), nullptr);
}

TEST(SingleFlight, ForgetsWhatItIsTold) {
  Squares squares;
  for (int i = 1; i <= 4; ++i) (void)squares.get(i);
  squares.cache.erase_if([](const Square& each) { return each.number % 2 == 0; });
  EXPECT_EQ(squares.find(4), nullptr) << "it was the one used last";
  EXPECT_NE(squares.find(3), nullptr);
  std::vector<std::pair<std::uint64_t, int>> kept;
  squares.cache.for_each_oldest_first(
      [&](std::uint64_t number, const auto& item) { kept.emplace_back(number, item->number); });
  EXPECT_EQ(kept, (std::vector<std::pair<std::uint64_t, int>>{{0, 1}, {2, 3}}));
}

}  // namespace
}  // namespace meshard::internal
