#include "meshard/graph/record.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

TEST(Record, KeepsTheCallersLine) {
  Tensor x = from_host(std::vector<float>{1}, {1});
  Tensor y = plus(x, x);
  EXPECT_EQ(y.where().line, static_cast<unsigned>(__LINE__ - 1));
  EXPECT_NE(std::string(y.where().file).find("record_test.cc"), std::string::npos);
}

Tensor composite(In x) {
  SourceScope line(x.where);
  return scale(plus(*x.tensor, *x.tensor), 2);
}

TEST(Record, CompositesPushTheOuterLine) {
  Tensor x = from_host(std::vector<float>{1}, {1});
  Tensor y = composite(x);
  unsigned line = __LINE__ - 1;
  EXPECT_EQ(y.where().line, line);
  EXPECT_EQ(y.value()->operands()[0]->where().line, line);
  Tensor z = plus(x, x);
  EXPECT_EQ(z.where().line, static_cast<unsigned>(__LINE__ - 1)) << "the scope has ended";
}

TEST(Record, TracesAreNumberedAndEnd) {
  Tensor x = from_host(std::vector<float>{1}, {1});
  EXPECT_EQ(plus(x, x).value()->trace(), 0u);
  {
    internal::TraceScope scope;
    EXPECT_TRUE(tracing());
    EXPECT_EQ(plus(x, x).value()->trace(), scope.trace());
  }
  EXPECT_FALSE(tracing());
}

TEST(Record, KeepOperandsIsARecordedProperty) {
  Tensor x = from_host(std::vector<float>{1}, {1});
  EXPECT_FALSE(plus(x, x).value()->keeps_operands());
  internal::KeepOperandsScope keep;
  EXPECT_TRUE(plus(x, x).value()->keeps_operands());
}

TEST(Record, ErrorsHaveOpPlaceAndBothValues) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor y = from_host(std::vector<float>{1}, {1});
  EXPECT_TRUE(throws_error([&] { plus(x, y); }, ErrorCode::kInvalidArgument,
                           {"record_test.cc:", "[plus]", "f32[2]", "f32[1]"}));
  EXPECT_TRUE(throws_error([&] { plus(x, Tensor()); }, ErrorCode::kInvalidArgument,
                           {"[plus]", "operand 1", "no value"}));
}

}  // namespace
}  // namespace meshard
