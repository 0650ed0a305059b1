#include "meshard/runtime/internal/move_plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "meshard/array/host_array.h"
#include "meshard/base/cat.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using Way = MoveStep::Way;
using Exchange = RouteOptions::Exchange;

// A mesh of one or two axes over some of 12 devices, in any order.
Mesh random_mesh(TestRandom& random, const char* first, const char* second) {
  std::vector<std::int64_t> ids(12);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), random);
  std::int64_t rows = random.between(1, 4), columns = random.between(1, 3);
  ids.resize(static_cast<std::size_t>(rows * columns));
  return Mesh({{first, rows}, {second, columns}}, ids);
}

Sharding random_sharding(TestRandom& random, const Mesh& mesh, std::size_t rank) {
  std::vector<AxisList> axes(rank);
  for (const MeshAxis& axis : mesh.axes())
    if (std::int64_t d = random.between(0, static_cast<std::int64_t>(rank));
        d < static_cast<std::int64_t>(rank))
      axes[static_cast<std::size_t>(d)].push_back(AxisRef(axis.name));
  std::vector<DimensionSpec> dimensions;
  for (AxisList& each : axes) dimensions.emplace_back(std::move(each));
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

// Devices are places, or the processes of `size` devices each.
std::vector<int> places_of(const Mesh& mesh, int size = 1) {
  std::vector<int> places;
  for (std::int64_t id : mesh.device_ids()) places.push_back(static_cast<int>(id) / size);
  return places;
}

// The tiles of a sharding, each for the place of its position.
std::vector<MoveTarget> tiles_of(const Sharding& target, const Shape& shape, int size = 1) {
  std::vector<MoveTarget> targets;
  const std::vector<int> places = places_of(target.mesh(), size);
  for (std::size_t p = 0; p < places.size(); ++p)
    targets.push_back({places[p], box_of(target, shape, static_cast<std::int64_t>(p))});
  return targets;
}

// The indices of all elements of a box, in row-major order.
std::vector<std::vector<std::int64_t>> elements_of(const Box& box) {
  std::vector<std::vector<std::int64_t>> all{{}};
  for (const DimensionSlice& part : box) {
    std::vector<std::vector<std::int64_t>> longer;
    for (const auto& prefix : all)
      for (std::int64_t i = part.start; i < part.stop; ++i) {
        longer.push_back(prefix);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  return all;
}

// Whether a place holds an element of the value.
bool has(const Sharding& source, const Shape& shape, const std::vector<int>& places, int place,
         const std::vector<std::int64_t>& element) {
  for (std::size_t p = 0; p < places.size(); ++p) {
    if (places[p] != place) continue;
    const Box box = box_of(source, shape, static_cast<std::int64_t>(p));
    bool inside = true;
    for (std::size_t d = 0; d < box.size(); ++d)
      inside = inside && box[d].start <= element[d] && element[d] < box[d].stop;
    if (inside) return true;
  }
  return false;
}

struct Drawn {
  Shape shape;
  Sharding source, target;
};
Drawn draw(TestRandom& random) {
  const auto rank = static_cast<std::size_t>(random.between(0, 3));
  Dimensions sizes;
  for (std::size_t d = 0; d < rank; ++d) sizes.push_back(random.between(1, 9));
  return {Shape(sizes), random_sharding(random, random_mesh(random, "a", "b"), rank),
          random_sharding(random, random_mesh(random, "r", "c"), rank)};
}

// Places are single devices, processes of four devices, or one process with all of them.
TEST(MovePlan, EachElementComesOnceFromAPlaceThatHasItAndOnlyMissingOnesAreSent) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    const auto [shape, source, target] = draw(random);
    const int size = std::vector{1, 4, 12}[static_cast<std::size_t>(round) % 3];
    SCOPED_TRACE(cat(shape, " from ", source, " to ", target, ", ", size, " devices a place"));
    const std::vector<int> places = places_of(source.mesh(), size);
    const std::vector<MoveTarget> targets = tiles_of(target, shape, size);
    std::vector<std::vector<std::vector<std::int64_t>>> found(targets.size());
    std::size_t last = 0;
    for (const Move& move : plan_moves(Tiling(source, shape), places, targets)) {
      ASSERT_LT(move.to, targets.size());
      EXPECT_GE(move.to, last) << "in the order of the targets";
      last = move.to;
      const Box own = box_of(source, shape, move.from);
      const int place = targets[move.to].place;
      EXPECT_EQ(move.stays, places[static_cast<std::size_t>(move.from)] == place);
      for (std::vector<std::int64_t>& element : elements_of(move.piece)) {
        for (std::size_t d = 0; d < own.size(); ++d)
          EXPECT_TRUE(own[d].start <= element[d] && element[d] < own[d].stop);
        EXPECT_EQ(has(source, shape, places, place, element), move.stays)
            << "what a place has is not sent to it";
        found[move.to].push_back(std::move(element));
      }
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      std::ranges::sort(found[i]);
      EXPECT_EQ(found[i], elements_of(targets[i].box)) << "target " << i;
    }
  }
}

// Each process computes the plan from a copy of the shardings.
TEST(MovePlan, AllProcessesPlanTheSame) {
  TestRandom random;
  for (int round = 0; round < 50; ++round) {
    const auto [shape, source, target] = draw(random);
    const auto again = [](const Sharding& sharding) {
      return Sharding::parse(sharding.to_string()).value();
    };
    const std::vector<int> places = places_of(source.mesh(), 2);
    EXPECT_EQ(plan_moves(Tiling(source, shape), places, tiles_of(target, shape, 2)),
              plan_moves(Tiling(again(source), shape), places, tiles_of(again(target), shape, 2)));
    EXPECT_EQ(plan_route(source, target, shape), plan_route(again(source), again(target), shape));
  }
}

TEST(MovePlan, ReplicasShareTheWork) {
  const Sharding source(Mesh({{"copy", 4}}), P(none, none));
  const Tiling tiling(source, {8, 4});
  const std::vector<int> places{0, 1, 2, 3};
  const auto rows = [](int place) { return MoveTarget{place, {{0, 8}, {0, 4}}}; };
  std::vector<MoveTarget> targets;
  for (int place = 4; place < 12; ++place) targets.push_back(rows(place));
  std::map<std::int64_t, int> sends;
  for (const Move& move : plan_moves(tiling, places, targets)) ++sends[move.from];
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sends[p], 2) << "place " << p;
  // One receiver alone: its number says who sends.
  EXPECT_EQ(plan_moves(tiling, places, std::vector{rows(6)})[0].from, 2);
  EXPECT_EQ(plan_moves(tiling, places, std::vector{rows(7)})[0].from, 3);
}

TEST(MovePlan, APlaceTakesFromItselfWhatItHas) {
  const Sharding source(Mesh({{"x", 2}, {"copy", 2}}, {0, 4, 1, 5}), P("x", none));
  const std::vector<int> places{0, 2, 1, 3};
  EXPECT_THAT(
      plan_moves(Tiling(source, {8, 4}), places, std::vector<MoveTarget>{{2, {{2, 6}, {0, 4}}}}),
      ElementsAre(Move{1, 0, {{2, 4}, {0, 4}}, true}, Move{2, 0, {{4, 6}, {0, 4}}, false}));
}

TEST(MoveRoute, LeadsToTheTargetAndCarriesNoPartialSums) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    auto [shape, source, target] = draw(random);
    const auto maybe_partial = [&](const Sharding& sharding) {
      AxisList unused = sharding.unused_axes();
      return unused.empty() || random.between(0, 2) > 0 ? sharding
                                                        : sharding.with_unreduced({unused[0]});
    };
    source = maybe_partial(source);
    target = maybe_partial(target);
    const Exchange exchange = std::vector{Exchange::kNone, Exchange::kPieces}[random() % 2];
    SCOPED_TRACE(cat(shape, " from ", source, " to ", target));
    Sharding at = source;
    int between = 0;
    for (const MoveStep& step : plan_route(source, target, shape, {.exchange = exchange})) {
      if (step.way == Way::kReshard) {
        EXPECT_TRUE(at.mesh().same_devices(step.to.mesh()));
      } else {
        ++between;
        EXPECT_TRUE(at.unreduced_axes().empty() && step.to.unreduced_axes().empty());
        EXPECT_EQ(step.way == Way::kReceive,
                  exchange == Exchange::kPieces && !has_tiles_in_place(at, step.to));
      }
      at = step.to;
    }
    EXPECT_EQ(at, target);
    EXPECT_EQ(between, source.mesh().same_devices(target.mesh()) ? 0 : 1);
  }
}

TEST(MoveRoute, TilesOfManyPiecesAreMadeOfFewByTheirOwnDevices) {
  const Shape shape{64, 48};
  const auto route = [&](const Sharding& source, const Sharding& target) {
    return plan_route(source, target, shape);
  };
  const Sharding source(Mesh({{"a", 4}, {"b", 3}}), P("a", "b"));
  const auto first = [&](const Sharding& target) {
    const std::vector<MoveStep> steps = route(source, target);
    EXPECT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].way, Way::kReshard);
    EXPECT_EQ(steps[1], (MoveStep{Way::kCarry, target}));
    EXPECT_LE(pieces_of_tile(steps[0].to, target, shape), kMostPiecesOfTile);
    return steps[0].to.spec();
  };
  // Each of these tiles would consist of all twelve shards.
  const Mesh far({{"r", 2}}, {12, 13});
  EXPECT_EQ(first(Sharding(far, P(none, none))), P(none, none));
  // Four pieces are few.
  const Sharding rows(Mesh({{"r", 3}}, {12, 13, 14}), P(none, "r"));
  EXPECT_THAT(route(source, rows), ElementsAre(MoveStep{Way::kCarry, rows}));
  // As many devices: the same tiles.
  const Sharding wide(Mesh({{"x", 12}}), P("x", none));
  const Sharding tall(Mesh({{"y", 12}}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}),
                      P(none, "y"));
  const std::vector<MoveStep> steps = route(wide, tall);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(steps[0].to.mesh().same_devices(wide.mesh()));
  EXPECT_TRUE(has_same_tiles(&steps[0].to, tall));
}

// Whole axes of the source split what the target splits more.
TEST(MoveRoute, NestedShardingsSplitWhatTheTargetSplitsMore) {
  const auto nested = [](const Sharding& source, const PartitionSpec& spec,
                         std::vector<MeshAxis> named) {
    std::int64_t size = 1;
    for (const MeshAxis& axis : named) size *= axis.size;
    std::vector<std::int64_t> ids(static_cast<std::size_t>(size));
    std::iota(ids.begin(), ids.end(), 192);
    const Sharding target(Mesh(std::move(named), std::move(ids)), spec);
    const std::vector<MoveStep> steps = plan_route(source, target, {384, 96});
    EXPECT_EQ(steps.size(), 2u) << target;
    return steps[0].to.spec();
  };
  const Mesh small({{"a", 4}, {"b", 3}}), large({{"a", 16}, {"b", 12}});
  const DimensionSpec both = axes("a", "b");
  EXPECT_EQ(nested(Sharding(small, P(none, both)), P("r", none), {{"r", 8}}), P("a", none));
  EXPECT_EQ(nested(Sharding(small, P(both, none)), P(none, "r"), {{"r", 24}}), P(none, both));
  EXPECT_EQ(nested(Sharding(small, P(both, none)), P(none, "r"), {{"r", 7}}), P(none, none));
  EXPECT_EQ(nested(Sharding(large, P(both, none)), P("r", "c"), {{"r", 12}, {"c", 32}}),
            P("b", "a"));
}

TEST(MoveRoute, LargerTilesThatAreInPlaceAreCutThere) {
  const Sharding source(Mesh({{"x", 4}}), P(none));
  const Sharding target(Mesh({{"x", 2}}, {3, 1}), P("x"));
  const std::vector<MoveStep> steps = plan_route(source, target, {8});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].way, Way::kCarry);
  EXPECT_TRUE(has_tiles_in_place(source, steps[0].to));
  EXPECT_EQ(steps[1], (MoveStep{Way::kReshard, target}));
}

TEST(MoveRoute, APlatformThatConnectsItsProcessesSendsWholeValues) {
  const Sharding source(Mesh({{"x", 4}}), P("x")), target(Mesh({{"x", 2}}), P("x"));
  EXPECT_THAT(plan_route(source, target, {8}, {.exchange = Exchange::kWhole}),
              ElementsAre(MoveStep{Way::kReadAndPlace, target}));
  EXPECT_THAT(
      plan_route(source, Sharding(Mesh({{"y", 4}}), P(none)), {8}, {.exchange = Exchange::kWhole}),
      ElementsAre(MoveStep{Way::kReshard, Sharding(Mesh({{"y", 4}}), P(none))}));
}

}  // namespace
}  // namespace meshard
