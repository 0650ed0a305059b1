#include "meshard/graph/annotate.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"
#include "tests/support/verify.h"

namespace meshard {
namespace {

using test::local;
using test::one;
using test::plus;
using test::scale;

Tensor host() { return from_host(std::vector<float>{1, 2}, {2}); }

std::string varying(const Tensor& tensor) {
  const ManualAxes* manual = manual_axes(tensor.value());
  return manual ? manual->varying.to_string(manual->mesh) : "full";
}

TEST(Annotate, ResultsVaryWhereAnOperandDoes) {
  Tensor x = local(host(), {"x", "y"}, {"x"}), y = local(host(), {"x", "y"}, {"y"});
  EXPECT_EQ(varying(scale(x, 2)), R"({"x"})");
  EXPECT_EQ(varying(plus(x, y)), R"({"x", "y"})");
  EXPECT_EQ(varying(plus(x, local(host(), {"x", "y"}, {}))), R"({"x"})");
  EXPECT_EQ(scale(x, 2).value()->annotations(), x.value()->annotations())
      << "they share one object";
}

TEST(Annotate, UnlikeValuesDoNotMeet) {
  Tensor x = local(host(), {"x"}, {"x"}), full = host();
  EXPECT_TRUE(throws_error([&] { plus(x, full); }, ErrorCode::kInvalidArgument,
                           {"[plus]", "annotate_test.cc:", "operand 0", R"(manual over {"x"})",
                            "operand 1", "is a full value"}));
  EXPECT_TRUE(throws_error([&] { plus(full, x); }, ErrorCode::kInvalidArgument,
                           {"operand 1", R"(manual over {"x"})", "operand 0"}));
  Tensor other = local(host(), {"y"}, {"y"});
  EXPECT_TRUE(throws_error([&] { plus(x, other); }, ErrorCode::kInvalidArgument,
                           {"different manual axes", R"(over {"x"})", R"(over {"y"})"}));
}

TEST(Annotate, FreeValuesMeetAll) {
  EXPECT_TRUE(is_free(one().value()));
  EXPECT_TRUE(is_free(scale(plus(one(), one()), 3).value()));
  EXPECT_TRUE(is_free(from_host(HostArray::scalar(2.0f)).value()));
  EXPECT_FALSE(is_free(host().value()));
  EXPECT_FALSE(is_free(plus(one(), host()).value()));
  Tensor x = local(host(), {"x"}, {"x"});
  EXPECT_FALSE(is_free(x.value()));
  EXPECT_EQ(varying(plus(x, scale(one(), 2))), R"({"x"})");
}

TEST(Annotate, VerifyFindsAnnotationsThatAreNotTheOperands) {
  internal::TraceScope scope;
  Tensor parameter = make_parameter({DType::f32, {2}}, std::nullopt, {});
  Tensor x = local(parameter, {"x"}, {"x"});
  Tensor y = scale(x, 2);
  Graph graph = Graph::build(std::vector{parameter.value()}, std::vector{y.value()}, scope.trace());
  EXPECT_TRUE(verify(graph).ok());
  y.value()->annotate(nullptr);
  EXPECT_FALSE(verify(graph).ok());
}

}  // namespace
}  // namespace meshard
