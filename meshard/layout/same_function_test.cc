#include "meshard/layout/same_function.h"

#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

TEST(SameFunction, AgreesWithTheLists) {
  TestRandom random;
  int same = 0;
  for (int round = 0; round < 20000; ++round) {
    // Few shapes and strides, so that equal functions occur.
    auto draw = [&] {
      IntVector sizes, strides;
      for (std::int64_t i = random.between(0, 3); i > 0; --i) {
        sizes.push_back(random.between(1, 2) * random.between(1, 2));
        strides.push_back(random.between(-1, 2) * random.between(1, 2));
      }
      return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
    };
    Layout a = draw(), b = draw();
    bool expected = values_of(a) == values_of(b);
    ASSERT_EQ(same_function(a, b), expected) << a.to_string() << " and " << b.to_string();
    same += expected;
  }
  EXPECT_GT(same, 500);
}

TEST(SameFunction, Examples) {
  EXPECT_TRUE(same_function(Layout(IntTuple{2, IntTuple{1, 6}}), Layout(IntTuple(12))));
  EXPECT_TRUE(same_function(Layout({1, 1}, {5, 7}), Layout()));
  EXPECT_FALSE(same_function(Layout(IntTuple(4)), Layout(IntTuple(5))));
  EXPECT_FALSE(same_function(Layout({2, 4}, {4, 1}), Layout({2, 4}, {1, 2})));
}

}  // namespace
}  // namespace meshard
