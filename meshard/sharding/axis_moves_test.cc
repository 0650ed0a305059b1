#include "meshard/sharding/axis_moves.h"

#include <gtest/gtest.h>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

const Mesh& moving_mesh() {
  static const Mesh mesh({{"x", 2}, {"y", 4}});
  return mesh;
}

Sharding over(const PartitionSpec& spec) { return Sharding(moving_mesh(), spec); }

// The axes of all moves, each once, in mesh order.
std::string axes_moved(const std::vector<AxisMove>& moves) {
  std::string out;
  for (std::string axis : {"x", "y"}) {
    bool moved = false;
    for (const AxisMove& move : moves)
      for (const AxisRef& each : move.axes) moved = moved || each.name == axis;
    if (moved) out += axis;
  }
  return out;
}

std::string moved(std::string_view rule, const std::vector<PartitionSpec>& operands,
                  const Sharding& result) {
  std::vector<Sharding> all;
  for (const PartitionSpec& spec : operands) all.push_back(over(spec));
  return axes_moved(axis_moves(ShardingRule::parse(rule).value(), all, {&result, 1}));
}

bool lies_in(const Box& inner, const Box& outer) {
  for (std::size_t d = 0; d < inner.size(); ++d)
    if (inner[d].start < outer[d].start || inner[d].stop > outer[d].stop) return false;
  return true;
}

// Whether some device needs elements that no device with its coordinate along the axis holds.
bool needs_others(const Sharding& from, const Sharding& to, std::size_t axis) {
  auto coordinate = [&](std::int64_t p) { return axis == 0 ? p / 4 : p % 4; };
  for (std::int64_t p = 0; p < 8; ++p) {
    Box wanted = to.slice({16, 16}, p);
    for (std::int64_t i = wanted[0].start; i < wanted[0].stop; ++i)
      for (std::int64_t j = wanted[1].start; j < wanted[1].stop; ++j) {
        bool found = false;
        for (std::int64_t q = 0; q < 8 && !found; ++q)
          found = coordinate(p) == coordinate(q) &&
                  lies_in({{i, i + 1}, {j, j + 1}}, from.slice({16, 16}, q));
        if (!found) return true;
      }
  }
  return false;
}

bool each_device_has_its_part(const Sharding& from, const Sharding& to) {
  for (std::int64_t p = 0; p < 8; ++p)
    if (!lies_in(to.slice({16, 16}, p), from.slice({16, 16}, p))) return false;
  return true;
}

TEST(AxisMoves, ReshardsMoveTheAxesThatDevicesExchange) {
  const std::vector<PartitionSpec> specs = {
      P(none, none),       P("x", none),        P("y", none),       P(none, "x"),
      P(none, "y"),        P("x", "y"),         P("y", "x"),        P({"x", "y"}, none),
      P({"y", "x"}, none), P(none, {"x", "y"}), P(none, {"y", "x"})};
  for (const PartitionSpec& from : specs)
    for (const PartitionSpec& to : specs) {
      std::string found = axes_moved(axis_moves(over(from), over(to)));
      EXPECT_EQ(found.empty(), each_device_has_its_part(over(from), over(to)))
          << from << " to " << to << ": " << found;
      for (std::size_t axis : {0u, 1u}) {
        if (!needs_others(over(from), over(to), axis)) continue;
        EXPECT_NE(found.find("xy"[axis]), std::string::npos)
            << from << " to " << to << " moves along "
            << "xy"[axis];
      }
    }
}

TEST(AxisMoves, Products) {
  const char* product = "([i, j], [j, k])->([i, k]) {i=8, j=8, k=8} reduction={j}";
  EXPECT_EQ(moved(product, {P("x", none), P(none, "y")}, over(P("x", "y"))), "");
  EXPECT_EQ(moved(product, {P("x", "y"), P(none, none)}, over(P("x", none))), "y");
  EXPECT_EQ(moved(product, {P("x", "y"), P("y", none)}, over(P("x", none))), "y");
  EXPECT_EQ(moved(product, {P("x", "y"), P("y", none)}, over(P("x", none)).with_unreduced({"y"})),
            "");
  EXPECT_EQ(moved(product, {P("x", none), P(none, "y")}, over(P("x", none))), "y") << "gathered";
  EXPECT_EQ(moved(product, {P(none, none), P(none, none)}, over(P("x", "y"))), "") << "parts";
}

TEST(AxisMoves, OtherFactors) {
  EXPECT_EQ(moved("([i])->([i]) {i=8} permutation={i}", {P("x")}, over(P("x"))), "x");
  EXPECT_EQ(moved("([i])->([i]) {i=8} need_replication={i}", {P("x")}, over(P(none))), "x");
  // 8 x 4 as 32: by the first factor nothing moves, by both the second one does.
  const char* joined = "([i, j])->([ij]) {i=8, j=4}";
  EXPECT_EQ(moved(joined, {P("x", none)}, over(P("x"))), "");
  EXPECT_EQ(moved(joined, {P("x", "y")}, over(P({"x", "y"}))), "y");
  Sharding partial = over(P(none)).with_unreduced({"x"});
  EXPECT_EQ(axes_moved(axis_moves(partial, over(P(none)))), "x");
  EXPECT_EQ(axes_moved(axis_moves(over(P(none)), partial)), "");
}

TEST(AxisMoves, SayWhy) {
  std::vector<AxisMove> moves = axis_moves(over(P(none, "y")), over(P("y", none)));
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].why,
            "{\"y\"} splits dimension 1 of operand 0, and the result is split by {} there");
}

}  // namespace
}  // namespace meshard
