#include <gtest/gtest.h>

#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

const Mesh& grid() {
  static const Mesh mesh({{"x", 2}, {"y", 4}});
  return mesh;
}

ShardingRule rule(const char* text) { return ShardingRule::parse(text).value(); }

const char* const kProductRule = "([i, j], [j, k])->([i, k]) {i=16, j=32, k=64} reduction={j}";
const char* const kSameRule = "([i, j])->([i, j]) {i=16, j=64}";

std::string spec_of(const PartialSharding& value) {
  std::optional<Sharding> sharding = value.sharding(grid());
  return sharding ? sharding->spec().to_string() : "unknown";
}

PartialSharding given(const PartitionSpec& spec) {
  return PartialSharding::of(Sharding(grid(), spec), 2);
}

// 2 = product of 0 and 1; 3 = 2, element-wise.
std::vector<std::string> after(std::vector<PartialSharding> values) {
  std::vector<RuledOp> ops = {{rule(kProductRule), {0, 1}, {2}}, {rule(kSameRule), {2}, {3}}};
  propagate_program(grid(), ops, values);
  std::vector<std::string> out;
  for (const PartialSharding& value : values) out.push_back(spec_of(value));
  return out;
}

const PartialSharding kOpen = PartialSharding::open_value(2);
using Specs = std::vector<std::string>;

TEST(PropagateProgram, ForwardAndBackward) {
  EXPECT_EQ(after({given(P("x", none)), given(P(none, "y")), kOpen, kOpen}),
            (Specs{"P(\"x\", none)", "P(none, \"y\")", "P(\"x\", \"y\")", "P(\"x\", \"y\")"}));
  EXPECT_EQ(after({kOpen, kOpen, kOpen, given(P("x", "y"))}),
            (Specs{"P(\"x\", none)", "P(none, \"y\")", "P(\"x\", \"y\")", "P(\"x\", \"y\")"}));
  // What is contracted is split alike in both, and not in the result.
  EXPECT_EQ(after({given(P(none, "y")), kOpen, kOpen, kOpen}),
            (Specs{"P(none, \"y\")", "P(\"y\", none)", "P(none, none)", "P(none, none)"}));
}

TEST(PropagateProgram, ClosedDimensionsStay) {
  EXPECT_EQ(after({given(P("x", none)), given(P()), kOpen, given(P(none, none))})[3],
            "P(none, none)");
  EXPECT_EQ(after({given(P("x", none)), given(P(none, "x")), kOpen, kOpen})[2], "P(\"x\", none)")
      << "an axis splits one dimension";
}

// Ops that only pass dimensions on come first: the result of the product is as its reader wants it.
TEST(PropagateProgram, PassThroughOpsComeFirst) {
  EXPECT_EQ(after({given(P("x", none)), kOpen, kOpen, given(P("y", "x"))})[2], "P(\"y\", \"x\")");
}

TEST(PropagateProgram, ValuesThatTakeNoPart) {
  EXPECT_EQ(after({given(P("x", none)), PartialSharding(), kOpen, kOpen}),
            (Specs{"P(\"x\", none)", "unknown", "P(none, none)", "P(none, none)"}));
}

TEST(PropagateProgram, AxesThatAreForbidden) {
  PartialSharding pinned = PartialSharding::of(
      Sharding(grid(), P(unconstrained, unconstrained)).with_replicated({"x"}), 2);
  EXPECT_EQ(after({given(P("x", none)), given(P(none, "y")), kOpen, pinned})[3], "P(none, \"y\")");
}

// A loop's carry: an op that gives a value which another op gives too.
TEST(PropagateProgram, AValueOfTwoOps) {
  std::vector<RuledOp> ops = {{rule(kSameRule), {0}, {1}}, {rule(kSameRule), {2}, {1}}};
  std::vector<PartialSharding> values = {kOpen, kOpen, given(P("x", "y"))};
  propagate_program(grid(), ops, values);
  EXPECT_EQ(spec_of(values[0]), "P(\"x\", \"y\")");
}

TEST(PropagateProgram, PartsOfShardings) {
  EXPECT_TRUE(kOpen.is_whole());
  EXPECT_FALSE(given(P("x", none)).is_whole());
  PartialSharding shorter = PartialSharding::of(Sharding(grid(), P("x")), 2);
  EXPECT_EQ(shorter.open, (std::vector<bool>{false, false}));
  EXPECT_EQ(spec_of(shorter), "P(\"x\", none)");
}

}  // namespace
}  // namespace meshard
