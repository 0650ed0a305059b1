#include "meshard/sharding/dtensor_placements.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

Mesh two_by_four() { return Mesh({{"x", 2}, {"y", 4}}); }

// Calculated by hand from the definition: axis i of the mesh has placement i.
TEST(Placements, MakeAShardingAndComeBack) {
  struct {
    Placements placements;
    Sharding sharding;
  } cases[] = {
      {{Shard(0), Replicate()}, Sharding(two_by_four(), P("x", none))},
      {{Replicate(), Shard(1)}, Sharding(two_by_four(), P(none, "y"))},
      {{Shard(1), Shard(0)}, Sharding(two_by_four(), P("y", "x"))},
      {{Shard(0), Shard(0)}, Sharding(two_by_four(), P({"x", "y"}, none))},
      {{Replicate(), Replicate()}, Sharding(two_by_four(), P(none, none))},
      {{Partial(), Shard(0)}, Sharding(two_by_four(), P("y", none)).with_unreduced({AxisRef("x")})},
      {{Partial("max"), Partial("max")},
       Sharding(two_by_four(), P(none, none)).with_unreduced({"x", "y"}, UnreducedKind::kMax)},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.placements.sharding(two_by_four(), 2), c.sharding) << c.placements.to_string();
    EXPECT_EQ(Placements::of(c.sharding).value(), c.placements) << c.sharding.to_string();
  }
}

// Calculated by hand, one axis at a time: arange(8) over the ranks [[0,1,2,3],[4,5,6,7]] puts
// element r on rank r; with the axes in reverse order, rank 4 i + j gets element 2 j + i.
TEST(Placements, AxesOfOneDimensionSplitInTheMeshsOrder) {
  IntVector eight{8};
  Sharding plain = Placements({Shard(0), Shard(0)}).sharding(two_by_four(), 1);
  for (std::int64_t p = 0; p < 8; ++p) EXPECT_EQ(plain.slice(eight, p)[0].start, p);
  Mesh turned({{"y", 4}, {"x", 2}}, {0, 4, 1, 5, 2, 6, 3, 7});
  Sharding other = Placements({Shard(0), Shard(0)}).sharding(turned, 1);
  for (std::int64_t rank = 0; rank < 8; ++rank)
    EXPECT_EQ(other.slice(eight, *turned.position(rank))[0].start, 2 * (rank % 4) + rank / 4);
}

TEST(Placements, NegativeDimensionsCountFromTheLast) {
  EXPECT_EQ(Placements({Shard(-1), Replicate()}).sharding(two_by_four(), 3),
            Sharding(two_by_four(), P(none, none, "x")));
}

TEST(Placements, TextsOfPython) {
  Placements two{Shard(0), Replicate()};
  EXPECT_EQ(two.to_string(), "(Shard(dim=0), Replicate())");
  EXPECT_EQ(Placements({Partial()}).to_string(), "(Partial(sum),)");
  EXPECT_EQ(Placements::parse("[Shard(0), Replicate()]").value(), two);
  EXPECT_EQ(Placements::parse("[Shard(dim=-1), Partial(), Partial(\"max\")]").value(),
            Placements({Shard(-1), Partial(), Partial("max")}));
  for (const Placements& each :
       {two, Placements({Partial("avg")}), Placements(), Placements({Shard(-2), Shard(3)})})
    EXPECT_EQ(Placements::parse(each.to_string()).value(), each) << each.to_string();
  for (const char* text :
       {"", "(Shard(0)", "[Shard(0) Replicate()]", "[Split(0)]", "[Shard()]", "[Shard(0)] x"})
    EXPECT_FALSE(Placements::parse(text).ok()) << text;
}

TEST(Placements, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error([] { Placements({Shard(0)}).sharding(two_by_four(), 2); }, invalid,
                           {"dtensor_placements_test.cc:", "1 placements, (Shard(dim=0),)",
                            "2 axes of mesh<x=2, y=4>"}));
  EXPECT_TRUE(throws_error(
      [] {
        Placements({Shard(2), Replicate()}).sharding(two_by_four(), 2);
      },
      invalid, {"\"x\"", "dimension 2", "rank 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        Placements({Shard(-3), Replicate()}).sharding(two_by_four(), 2);
      },
      invalid, {"dimension -3"}));
  EXPECT_TRUE(throws_error(
      [] {
        Placements({Replicate(), Partial("avg")}).sharding(two_by_four(), 2);
      },
      invalid, {"\"y\"", "Partial(avg)", "pending sums, maxima and minima"}));
  EXPECT_TRUE(throws_error(
      [] {
        Placements({Partial(), Partial("max")}).sharding(two_by_four(), 2);
      },
      invalid, {"\"y\"", "Partial(max)", "one pending reduction"}));
  Result<Placements> part = Placements::of(Sharding(two_by_four(), P(AxisRef("y", 1, 2))));
  EXPECT_TRUE(throws_error([&] { part.value(); }, invalid, {"\"y\":(1)2", "unflatten"}));
  Result<Placements> order = Placements::of(Sharding(two_by_four(), P({"y", "x"})));
  EXPECT_TRUE(throws_error([&] { order.value(); }, invalid, {"\"x\"", "permute"}));
}

}  // namespace
}  // namespace meshard
