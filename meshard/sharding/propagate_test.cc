#include "meshard/sharding/propagate.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

Mesh mesh24() { return Mesh({{"x", 2}, {"y", 4}}); }

// The spec of result 0, or the conflict.
std::string run(const char* rule, const std::vector<PartitionSpec>& specs,
                Propagating how = Propagating::kPredict) {
  std::vector<Sharding> operands;
  for (const PartitionSpec& spec : specs) operands.push_back(Sharding(mesh24(), spec));
  Propagation out = propagate(ShardingRule::parse(rule).value(), operands, how);
  if (!out.ok()) {
    EXPECT_TRUE(out.results.empty());
    return out.conflict->message;
  }
  std::string text = out.results.at(0).spec().to_string();
  if (!out.reduced.empty()) text += " reduced " + to_string(out.reduced);
  if (!out.gathered.empty()) text += " gathered " + to_string(out.gathered);
  return text;
}

const char* kMatmul = "([i, j], [j, k])->([i, k]) {i=8, j=8, k=16} reduction={j}";
const char* kAdd = "([i, j], [i, j])->([i, j]) {i=8, j=8}";
const char* kSplit = "([ij])->([i, j]) {i=4, j=8}";
const char* kMerge = "([i, j])->([ij]) {i=4, j=8}";

TEST(Propagate, MatrixProduct) {
  EXPECT_EQ(run(kMatmul, {P("x", none), P(none, "y")}), "P(\"x\", \"y\")");
  EXPECT_EQ(run(kMatmul, {P("x", "y"), P("y", none)}), "P(\"x\", none) reduced {\"y\"}");
  EXPECT_EQ(run(kMatmul, {P(none, "y"), P(none, none)}), "P(none, none) reduced {\"y\"}");
}

TEST(Propagate, TheLongerListCounts) {
  EXPECT_EQ(run(kAdd, {P("x", none), P(none, "y")}), "P(\"x\", \"y\")");
  EXPECT_EQ(run(kAdd, {P("x", none), P({"x", "y"}, none)}), "P({\"x\", \"y\"}, none)");
  EXPECT_EQ(run(kAdd, {P("y", none), P({{"y", 1, 2}}, none)}), "P(\"y\", none)");
}

TEST(Propagate, Conflicts) {
  EXPECT_EQ(run(kAdd, {P("x", none), P("y", none)}),
            "factor i is split by {\"x\"} in operand 0 and by {\"y\"} in operand 1");
  EXPECT_EQ(run(kAdd, {P("x", none), P(none, "x")}),
            "axis \"x\" splits factor i in operand 0 and factor j in operand 1");
  EXPECT_EQ(run(kMatmul, {P("x", none), P("x", none)}),
            "axis \"x\" splits factor i in operand 0 and factor j in operand 1");
  EXPECT_EQ(run(kAdd, {P({"x", "y"}, none), P({"y", "x"}, none)}),
            "factor i is split by {\"x\", \"y\"} in operand 0 and by {\"y\", \"x\"} in operand 1");
}

TEST(Propagate, DimensionsOfSeveralFactors) {
  EXPECT_EQ(run(kSplit, {P("x")}), "P(\"x\", none)");
  EXPECT_EQ(run(kSplit, {P("y")}), "P(\"y\", none)");
  // i gets x and half of y; j gets the other half.
  EXPECT_EQ(run(kSplit, {P({"x", "y"})}), "P({\"x\", \"y\":(1)2}, \"y\":(2)2)");
  EXPECT_EQ(run(kMerge, {P({"x", {"y", 1, 2}}, {{"y", 2, 2}})}), "P({\"x\", \"y\"})");
  EXPECT_EQ(run(kMerge, {P("y", "x")}), "P({\"y\", \"x\"})");
  EXPECT_EQ(run(kMerge, {P("x", none)}), "P(\"x\")");
  EXPECT_NE(run(kMerge, {P("x", "y")}).find("strided"), std::string::npos);
  EXPECT_NE(run("([ij])->([i, j]) {i=3, j=8}", {P("x")}).find("do not align with its factors"),
            std::string::npos);
}

TEST(Propagate, OtherKinds) {
  const char* sort = "([i, j])->([i, j]) {i=8, j=8} need_replication={j}";
  EXPECT_EQ(run(sort, {P("x", "y")}), "P(\"x\", none) gathered {\"y\"}");
  const char* shift = "([i, j])->([i, j]) {i=8, j=8} permutation={j}";
  EXPECT_EQ(run(shift, {P("x", "y")}), "P(\"x\", \"y\")");
  // A factor that occurs only in the result is not split.
  EXPECT_EQ(run("([i])->([i, j]) {i=8, j=5}", {P("x")}), "P(\"x\", none)");
}

// What JAX 0.10 infers over explicit axes.
TEST(Propagate, InferringDecidesNothing) {
  auto infer = [](const char* rule, const std::vector<PartitionSpec>& specs) {
    return run(rule, specs, Propagating::kInfer);
  };
  auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(infer(kAdd, {P("x", none), P(none, "y")}), "P(\"x\", \"y\")");
  EXPECT_TRUE(
      has(infer(kAdd, {P("x", none), P({"x", "y"}, none)}), "must be split by the same axes"));
  EXPECT_EQ(infer(kMatmul, {P(none, "y"), P(none, none)}), "P(none, none) reduced {\"y\"}");
  EXPECT_EQ(infer(kMatmul, {P(none, "x"), P(none, "x")}), "P(none, \"x\") reduced {\"x\"}")
      << "x is gone from the contracted dimension";
  EXPECT_TRUE(has(infer(kMatmul, {P(none, "y"), P("y", none)}), "partial sum"));
  EXPECT_TRUE(has(infer(kMatmul, {P("x", none), P(none, "x")}), "would split dimensions 0 and 1"));
  EXPECT_TRUE(has(infer(kSplit, {P({"x", "y"})}), "do not align with its factors"))
      << "y is not cut";
  EXPECT_EQ(infer(kSplit, {P({"y", "x"})}), "P(\"y\", \"x\")");
  EXPECT_EQ(infer(kMerge, {P("x", "y")}), "P({\"x\", \"y\"})");
  EXPECT_TRUE(has(infer(kMerge, {P(none, "y")}), "strided"));
  const char* sort = "([i, j])->([i, j]) {i=8, j=8} need_replication={j}";
  EXPECT_TRUE(has(infer(sort, {P("x", "y")}), "requires this dimension to be unsplit"));
}

TEST(Propagate, UnreducedOperands) {
  ShardingRule rule = ShardingRule::parse("([i])->([i]) {i=8}").value();
  std::vector<Sharding> operands = {Sharding(mesh24(), P("x")).with_unreduced({"y"})};
  Propagation out = propagate(rule, operands);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.conflict->message, "operand 0 is unreduced over {\"y\"}");
}

TEST(Propagate, Errors) {
  ShardingRule rule = ShardingRule::parse(kAdd).value();
  Sharding a(mesh24(), P("x", none)), other(Mesh({{"x", 2}}), P("x", none)),
      vector(mesh24(), P("x"));
  auto with = [&](std::vector<Sharding> operands) {
    return [&rule, operands] { propagate(rule, operands); };
  };
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(with({a}), invalid, {"1 shardings for the 2 operands"}));
  EXPECT_TRUE(throws_error(with({a, other}), invalid, {"mesh<x=2, y=4>", "mesh<x=2>"}));
  EXPECT_TRUE(throws_error(with({a, vector}), invalid, {"operand 1 has 2 dimensions", "1 in"}));
}

}  // namespace
}  // namespace meshard
