#include "meshard/base/inline_vector.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/random.h"

namespace meshard {
namespace {

// Model-based: every operation on InlineVector and on std::vector gives the same elements.
template <class T, class Make>
void compare_with_vector(Make make) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    InlineVector<T, 3> ours;
    std::vector<T> model;
    for (int step = 0; step < 40; ++step) {
      switch (random.between(0, 6)) {
        case 0:
        case 1:
        case 2: {
          T value = make(random.between(0, 1000));
          ours.push_back(value);
          model.push_back(value);
          break;
        }
        case 3:
          if (!model.empty()) {
            ours.pop_back();
            model.pop_back();
          }
          break;
        case 4:
          if (!model.empty()) {
            auto at = random.between(0, static_cast<std::int64_t>(model.size()) - 1);
            ours.erase(ours.begin() + at);
            model.erase(model.begin() + at);
          }
          break;
        case 5: {
          auto at = random.between(0, static_cast<std::int64_t>(model.size()));
          T value = make(random.between(0, 1000));
          ours.insert(ours.begin() + at, value);
          model.insert(model.begin() + at, value);
          break;
        }
        case 6: {
          InlineVector<T, 3> copy = ours;
          InlineVector<T, 3> moved = std::move(ours);
          ASSERT_TRUE(ours.empty());
          ASSERT_EQ(copy, moved);
          ours = std::move(moved);
          break;
        }
      }
      ASSERT_EQ(std::vector<T>(ours.begin(), ours.end()), model);
    }
  }
}

TEST(InlineVector, BehavesAsVectorOfIntegers) {
  compare_with_vector<std::int64_t>([](std::int64_t n) { return n; });
}

TEST(InlineVector, BehavesAsVectorOfStrings) {
  compare_with_vector<std::string>(
      [](std::int64_t n) { return std::string(static_cast<std::size_t>(n % 40), 'x'); });
}

TEST(InlineVector, PushingAnElementOfItselfWhileGrowing) {
  InlineVector<std::string, 2> v{"a long enough string to be on the heap", "b"};
  v.push_back(v[0]);
  EXPECT_EQ(v[2], "a long enough string to be on the heap");
}

TEST(InlineVector, OrdersAsSequences) {
  EXPECT_LT((InlineVector<int, 4>{1, 2}), (InlineVector<int, 4>{1, 3}));
  EXPECT_LT((InlineVector<int, 4>{1}), (InlineVector<int, 4>{1, 0}));
}

}  // namespace
}  // namespace meshard
