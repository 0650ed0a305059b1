#include "meshard/nn/axis_rules.h"

#include <gmock/gmock.h>

#include "meshard/ops/all.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

AxisRules rules_2x4() {
  return AxisRules(Mesh({{"data", 2}, {"model", 4}}), {{"batch", "data"},
                                                       {"heads", "model"},
                                                       {"hidden", "model"},
                                                       {"flat", axes("data", "model")}});
}

TEST(AxisRules, NamesBecomeAxes) {
  AxisRules rules = rules_2x4();
  EXPECT_EQ(rules.spec(P("embed", "heads", none)), P(none, "model", none));
  EXPECT_EQ(rules.spec(P("batch", none, "hidden")), P("data", none, "model"));
  EXPECT_EQ(rules.spec(P("data", "embed")), P("data", none)) << "an axis of the mesh is itself";
  EXPECT_EQ(rules.spec(P("flat")), P(axes("data", "model")));
  EXPECT_EQ(rules.spec(P(unconstrained, "model")), P(unconstrained, "model"));
}

TEST(AxisRules, PositionsAreAxesOfTheMesh) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 4}}), {{"batch", 0}, {"heads", DimensionSpec(1)}});
  EXPECT_EQ(rules.spec(P("batch", "heads")), P("data", "model"));
  EXPECT_EQ(rules.spec(P(0, "batch")), P("data", none)) << "one axis under two descriptions";
}

TEST(AxisRules, AnAxisSplitsOneDimensionOnly) {
  EXPECT_EQ(rules_2x4().spec(P("heads", "hidden")), P("model", none));
  EXPECT_EQ(rules_2x4().spec(P("hidden", "flat")), P("model", "data"));
}

TEST(AxisRules, WithoutAMeshNothingIsSplit) {
  AxisRules rules;
  EXPECT_FALSE(rules.sharding(P("heads")));
  EXPECT_EQ(rules.spec(P("heads", "model")), P(none, none));
  Tensor x = ones({4});
  EXPECT_EQ(rules.mark(x, P("heads")).value(), x.value());
}

TEST(AxisRules, ARuleNamesAxesOfTheMesh) {
  EXPECT_TRUE(throws_error(
      [] {
        AxisRules(Mesh({{"data", 2}}), {{"heads", "model"}});
      },
      ErrorCode::kNotFound, {"model", "data"}));
}

}  // namespace
}  // namespace meshard::nn
