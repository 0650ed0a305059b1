#include "tests/support/verify.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

TEST(Verify, AcceptsWhatWasRecordedAndRefusesAWrongType) {
  internal::TraceScope scope;
  Tensor a = make_parameter({DType::f32, Shape{2}}, std::nullopt, {});
  Tensor good = test::plus(a, a);
  Tensor bad = record_typed(test::plus_op, nullptr, {&a, &a}, {DType::f32, Shape{3}}, {});
  auto check = [&](const Tensor& result) {
    return verify(Graph::build(std::vector{a.value()}, std::vector{result.value()}, scope.trace()));
  };
  EXPECT_TRUE(check(good).ok());
  Result<void> refused = check(bad);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("recorded f32[3], inferred f32[2]"), std::string::npos);
}

}  // namespace
}  // namespace meshard
