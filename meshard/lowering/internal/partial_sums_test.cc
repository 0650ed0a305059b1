// tests/e2e/unreduced_test.cc tests what the written text computes.
#include "meshard/lowering/internal/partial_sums.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

Mesh sums_mesh() { return Mesh({{"x", 2}, {"y", 2}, {"one", 1}}); }

Tensor placed_parameter(Shape shape, const PartitionSpec& spec) {
  return make_parameter({DType::f32, std::move(shape)}, Sharding(sums_mesh(), spec), {});
}
bool is_unsummed(const Tensor& x, const PartitionSpec& spec, const AxisList& unreduced) {
  Tensor mark = sharding_constraint(x, Sharding(sums_mesh(), spec).with_unreduced(unreduced));
  return unsummed_operand(*mark.value().node()) != nullptr;
}

TEST(PartialSums, ProductsAndSumsOverExactlyTheseAxes) {
  internal::TraceScope scope;
  Tensor a = placed_parameter({4, 8}, P("x", "y")), b = placed_parameter({8, 2}, P("y", none));
  EXPECT_TRUE(is_unsummed(matmul(a, b), P("x", none), {"y"}));
  EXPECT_TRUE(is_unsummed(sum(a, 1), P("x"), {"y"}));
  EXPECT_TRUE(is_unsummed(sum(a), P(), {"x", "y"}));
  EXPECT_FALSE(is_unsummed(sum(a), P(), {"y"})) << "x is summed";
  EXPECT_FALSE(is_unsummed(sum(a, 1), P("x"), {"one"}));
  EXPECT_FALSE(is_unsummed(sum(a, 1), P(none), {"y"})) << "the result is gathered first";
  EXPECT_FALSE(is_unsummed(max(a, 1), P("x"), {"y"})) << "not a sum";
  EXPECT_FALSE(is_unsummed(sum(a, 1) + 1, P("x"), {"y"}));
  EXPECT_FALSE(is_unsummed(a, P("x", none), {"y"}));
}

TEST(PartialSums, UncertainOperands) {
  internal::TraceScope scope;
  Tensor a = placed_parameter({4, 8}, P("x", "y"));
  EXPECT_FALSE(is_unsummed(sum(a * 2, 1), P("x"), {"y"})) << "the compiler may place the product";
  EXPECT_FALSE(is_unsummed(sum(placed_parameter({4, 7}, P("x", "y")), 1), P("x"), {"y"}));
  EXPECT_FALSE(is_unsummed(sum(placed_parameter({4, 8}, P("x", unconstrained)), 1), P("x"), {"y"}));
  EXPECT_FALSE(
      is_unsummed(sum(make_parameter({DType::f32, {4, 8}}, std::nullopt, {}), 1), P("x"), {"y"}));
}

TEST(PartialSums, AnAxisOfSizeOneHasNoSummands) {
  const Sharding whole(sums_mesh(), P("x"));
  EXPECT_FALSE(has_summands(whole));
  EXPECT_FALSE(has_summands(whole.with_unreduced({"one"})));
  EXPECT_TRUE(has_summands(whole.with_unreduced({"one", "y"})));
  EXPECT_EQ(summed(whole.with_unreduced({"y"})), whole);
}

}  // namespace
}  // namespace meshard
