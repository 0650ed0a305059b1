#include "meshard/layout/concatenate.h"

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

TEST(Concatenate, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Layout a = random_layout(random), b = random_layout(random);
    Layout both = concatenate({a, b});
    ASSERT_EQ(both.rank(), 2u);
    EXPECT_EQ(both.mode(0), a);
    EXPECT_EQ(both.mode(1), b);
    EXPECT_EQ(concatenate(a, b), both);
    for (std::int64_t i = 0; i < a.size(); i += random.between(1, 7))
      for (std::int64_t j = 0; j < b.size(); j += random.between(1, 7))
        ASSERT_EQ(both(IntTuple{i, j}), a(i) + b(j)) << both.to_string();
  }
}

TEST(Concatenate, Examples) {
  EXPECT_EQ(concatenate({}), Layout());
  EXPECT_EQ(concatenate({Layout(IntTuple(2), IntTuple(6))}).to_string(), "(2):(6)");
  EXPECT_EQ(concatenate({Layout({4}, {4}), Layout(IntTuple(2))}).to_string(), "((4),2):((4),1)");
}

}  // namespace
}  // namespace meshard
