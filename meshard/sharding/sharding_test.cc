#include "meshard/sharding/sharding.h"

#include <algorithm>
#include <map>
#include <vector>

#include "meshard/sharding/sharding_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Mesh sharding_mesh24() { return Mesh({{"data", 2}, {"model", 4}}); }

TEST(Sharding, ShardsOfEvenSizes) {
  Sharding s(sharding_mesh24(), P("data", none), 2);
  EXPECT_EQ(s.shard_shape({16, 8}), (IntVector{8, 8}));
  EXPECT_EQ(s.slice({16, 8}, 5), (Box{{8, 16}, {0, 8}}));
  EXPECT_EQ(s.num_tiles(0), 2);
  EXPECT_EQ(s.num_tiles(1), 1);
  EXPECT_EQ(s.num_tiles(), 2);
  EXPECT_EQ(s.num_replicas(), 4);
  EXPECT_EQ(s.replica_id(6), 2);
  EXPECT_TRUE(s.is_even({16, 8}));
  EXPECT_FALSE(s.is_fully_replicated());
  EXPECT_TRUE(Sharding::replicated(sharding_mesh24(), 3).is_fully_replicated());
}

// Ceil division; the last shards are short or empty, and their ranges are clamped.
TEST(Sharding, ShardsOfUnevenSizes) {
  Sharding s(Mesh({{"x", 4}}), P("x"));
  EXPECT_EQ(s.shard_shape({5}), (IntVector{2}));
  EXPECT_EQ(s.padded_shape({5}), (IntVector{8}));
  EXPECT_FALSE(s.is_even({5}));
  EXPECT_EQ(s.slice({5}, 2), (Box{{4, 5}}));
  EXPECT_EQ(s.slice({5}, 3), (Box{{5, 5}}));
  EXPECT_EQ(s.slice({0}, 3), (Box{{0, 0}}));
  SliceTable distinct = s.distinct_slices({5});
  ASSERT_EQ(distinct.size(), 4u);
  EXPECT_EQ(distinct[3][0], (DimensionSlice{5, 5}));
  EXPECT_EQ(s.distinct_slices({2}).size(), 3u);  // [0,1) [1,2) and one empty
  EXPECT_EQ(s.distinct_slices({0}).size(), 1u);
}

TEST(Sharding, TheOrderOfAxesCounts) {
  Sharding xy(sharding_mesh24(), P({"data", "model"})), yx(sharding_mesh24(), P({"model", "data"}));
  EXPECT_EQ(xy.slice({8}, 1)[0], (DimensionSlice{1, 2}));
  EXPECT_EQ(yx.slice({8}, 1)[0], (DimensionSlice{2, 3}));
  EXPECT_FALSE(xy.is_equivalent_to(yx, 1));
}

TEST(Sharding, DimensionsBeyondTheSpecAreNotSplit) {
  Sharding s(sharding_mesh24(), P("data"));
  EXPECT_EQ(s.rank(), 1u);
  EXPECT_EQ(s.shard_shape({4, 6}), (IntVector{2, 6}));
  EXPECT_EQ(s.with_rank(2), Sharding(sharding_mesh24(), P("data"), 2));
  EXPECT_NE(s, s.with_rank(2));
  EXPECT_TRUE(s.is_equivalent_to(s.with_rank(2), 2));
}

TEST(Sharding, SlicesAgreeWithOneAnother) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = random_mesh(random);
    std::size_t rank = static_cast<std::size_t>(random.between(0, 3));
    Sharding s = random_sharding(random, mesh, rank);
    std::vector<std::int64_t> dims;
    for (std::size_t d = 0; d < rank; ++d) dims.push_back(random.between(0, 13));
    SCOPED_TRACE(s.to_string() + " (" + join(dims, ",") + ")");

    SliceTable all = s.slices(dims);
    std::map<std::vector<std::int64_t>, std::int64_t> seen_tiles;
    std::map<std::vector<std::pair<std::int64_t, std::int64_t>>, std::int64_t> seen_slices;
    for (std::int64_t p = 0; p < mesh.size(); ++p) {
      Box slice = s.slice(dims, p);
      std::vector<std::int64_t> tile;
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      for (std::size_t d = 0; d < rank; ++d) {
        tile.push_back(s.tile_index(d, p));
        ranges.emplace_back(slice[d].start, slice[d].stop);
        std::int64_t n = s.num_tiles(d), shard = (dims[d] + n - 1) / n;
        ASSERT_EQ(slice[d].start, std::min(dims[d], shard * tile[d]));
        ASSERT_EQ(slice[d].stop, std::min(dims[d], shard * tile[d] + shard));
        ASSERT_EQ(all[static_cast<std::size_t>(p)][d], slice[d]);
      }
      ASSERT_EQ(s.replica_id(dims, p), seen_slices[ranges]++);  // earlier positions, same slice
      ASSERT_EQ(s.replica_id(p), seen_tiles[tile]++);  // earlier positions with the same tile
      ASSERT_EQ(s.position_of(tile, s.replica_id(p)), p);
    }
    SliceTable distinct = s.distinct_slices(dims);
    ASSERT_EQ(distinct.size(), seen_slices.size());
    std::size_t i = 0;
    for (auto& [ranges, count] : seen_slices) {  // ascending
      for (std::size_t d = 0; d < rank; ++d)
        EXPECT_EQ(distinct[i][d], (DimensionSlice{ranges[d].first, ranges[d].second}));
      ++i;
    }
  }
}

// Equivalence by definition: every device has the same tile.
bool same_tiles(const Sharding& a, const Sharding& b, std::size_t rank) {
  for (std::int64_t p = 0; p < a.mesh().size(); ++p) {
    auto q = b.mesh().position(a.mesh().device_id(p));
    if (!q) return false;
    for (std::size_t d = 0; d < rank; ++d)
      if (a.num_tiles(d) != b.num_tiles(d) || a.tile_index(d, p) != b.tile_index(d, *q))
        return false;
  }
  return true;
}

TEST(Sharding, EquivalenceIsThatOfTheDeviceMaps) {
  TestRandom random;
  int equivalent = 0;
  for (int round = 0; round < 2000; ++round) {
    Mesh mesh = random_mesh(random), other = mesh;
    if (round % 2 == 0) {  // the same devices as one axis, in another order
      std::vector<std::int64_t> ids = mesh.device_ids().to_vector();
      if (round % 4 == 0) std::shuffle(ids.begin(), ids.end(), random);
      other = Mesh({{"q", mesh.size()}}, ids);
    }
    Sharding a = random_sharding(random, mesh, 2), b = random_sharding(random, other, 2);
    bool expected = same_tiles(a, b, 2);
    equivalent += expected;
    ASSERT_EQ(a.same_placement(b, 2), expected) << a.to_string() << b.to_string();
    ASSERT_EQ(b.same_placement(a, 2), expected);
    bool in_order = mesh.rank_map() == other.rank_map();
    ASSERT_EQ(a.is_equivalent_to(b, 2), expected && in_order) << a.to_string() << b.to_string();
  }
  EXPECT_GT(equivalent, 50);
}

TEST(Sharding, OfOneThreadShareTheirState) {
  Mesh mesh = sharding_mesh24();
  Sharding rows(mesh, P("data"), 2);
  EXPECT_TRUE(rows.is_copy_of(Sharding(mesh, P("data", none))));
  EXPECT_TRUE(rows.is_copy_of(Sharding(mesh, P("data"), 2)));
  // All that differs is another one.
  for (const Sharding& other :
       {Sharding(mesh, P("data")), Sharding(mesh, P("data"), 3), Sharding(mesh, P(none, "data")),
        Sharding(mesh, P("data", unconstrained)), Sharding(mesh, P("model"), 2),
        rows.with_replicated({"model"}), rows.with_unreduced({"model"}),
        Sharding(Mesh({{"data", 2}, {"model", 4}}, {1, 0, 2, 3, 4, 5, 6, 7}), P("data"), 2)}) {
    EXPECT_FALSE(rows.is_copy_of(other)) << other.to_string();
    EXPECT_NE(rows, other);
    EXPECT_TRUE(rows.is_copy_of(Sharding(mesh, P("data"), 2)));
  }
  // One that no sharding uses any more is made again; an error stays one.
  std::string text = Sharding(mesh, P("model", "data")).to_string();
  EXPECT_EQ(Sharding(mesh, P("model", "data")).to_string(), text);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(Sharding(mesh, P("nowhere"), 2), Error);
  EXPECT_THROW(Sharding(mesh, P("data", none), 1), Error);
}

TEST(Sharding, EqualityAndHash) {
  Sharding a(sharding_mesh24(), P("data", {"model"})), b(sharding_mesh24(), P("data", "model"));
  std::vector<Sharding> copies{a};
  EXPECT_EQ(a, copies[0]);
  EXPECT_EQ(a, b);
  EXPECT_TRUE(a.is_copy_of(copies[0]));
  EXPECT_FALSE(a.is_copy_of(b));
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_NE(a, Sharding(sharding_mesh24(), P("data", none)));
  EXPECT_NE(Sharding(sharding_mesh24(), P(none)), Sharding(sharding_mesh24(), P(unconstrained)));
  EXPECT_NE(Sharding(sharding_mesh24(), P(none)),
            Sharding(sharding_mesh24(), P(none)).with_replicated({"data"}));
  EXPECT_NE(Sharding(sharding_mesh24(), P(none)).with_unreduced({"data"}),
            Sharding(sharding_mesh24(), P(none)).with_replicated({"data"}));
  // A sub-axis that covers the whole axis equals the axis, and so do parts that add up to it.
  EXPECT_EQ(Sharding(sharding_mesh24(), P({{"model", 1, 4}})),
            Sharding(sharding_mesh24(), P("model")));
  EXPECT_EQ(Sharding(sharding_mesh24(), P({{"model", 1, 2}, {"model", 2, 2}})),
            Sharding(sharding_mesh24(), P("model")));
}

TEST(Sharding, UnreducedCountsForEquivalence) {
  Sharding s(sharding_mesh24(), P("data"));
  EXPECT_FALSE(s.is_equivalent_to(s.with_unreduced({"model"}), 1));
  EXPECT_TRUE(s.is_equivalent_to(s.with_replicated({"model"}), 1));
  const Sharding most = s.with_unreduced({"model"}, UnreducedKind::kMax);
  EXPECT_NE(most, s.with_unreduced({"model"}));
  EXPECT_FALSE(most.is_equivalent_to(s.with_unreduced({"model"}), 1));
  EXPECT_TRUE(most.is_equivalent_to(s.with_unreduced_of(most), 1));
  EXPECT_EQ(most.with_rank(2).with_replicated({}).unreduced_kind(), UnreducedKind::kMax);
  EXPECT_EQ(s.with_unreduced({}, UnreducedKind::kMin), s);
  // The same devices in another order, and a mesh that is derived from theirs.
  Mesh turned({{"data", 2}, {"model", 4}}, {4, 5, 6, 7, 0, 1, 2, 3});
  EXPECT_FALSE(Sharding(turned, P())
                   .with_unreduced({"data", "model"})
                   .same_placement(Sharding(sharding_mesh24(), P())
                                       .with_unreduced({"data", "model"}, UnreducedKind::kMax),
                                   1));
  EXPECT_EQ(Sharding(sharding_mesh24().slice({"model"}), P())
                .with_unreduced({"model"}, UnreducedKind::kMin)
                .unreduced_kind(),
            UnreducedKind::kMin);
  EXPECT_EQ(to_string(s.with_unreduced({"model"}).unused_axes()), "{\"model\"}");
}

TEST(Sharding, ParsesWhatItPrints) {
  TestRandom random;
  for (int round = 0; round < 100; ++round) {
    Sharding s = random_sharding(random, random_mesh(random), 2);
    if (round % 2 == 0) s = s.with_replicated(s.unused_axes());
    if (round % 2 == 1)
      s = s.with_unreduced(s.unused_axes(), static_cast<UnreducedKind>(round / 2 % 3));
    EXPECT_EQ(Sharding::parse(s.to_string()).value(), s) << s.to_string();
  }
  EXPECT_EQ(Sharding(sharding_mesh24(), P("data", none)).with_unreduced({"model"}).to_string(),
            "Sharding(mesh<data=2, model=4>, P(\"data\", none), unreduced={\"model\"})");
  EXPECT_EQ(Sharding(sharding_mesh24(), P("data"))
                .with_unreduced({"model"}, UnreducedKind::kMax)
                .to_string(),
            "Sharding(mesh<data=2, model=4>, P(\"data\"), unreduced=max{\"model\"})");
  EXPECT_FALSE(Sharding::parse("Sharding(mesh<x=2>, P(\"y\"))").ok());
}

TEST(Sharding, ErrorsNameDimensionSizesAndMesh) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [] { Sharding(sharding_mesh24(), P(none, "mdl")); }, ErrorCode::kNotFound,
      {"sharding_test.cc", "dimension 1", "\"mdl\"", "data, model", "mesh<data=2, model=4>"}));
  EXPECT_TRUE(throws_error([] { Sharding(sharding_mesh24(), P("data", "data")); }, invalid,
                           {"\"data\"", "twice", "dimension 0", "dimension 1", "mesh<"}));
  EXPECT_TRUE(throws_error(
      [] {
        Sharding(sharding_mesh24(), P("data", {{"model", 1, 2}}, "model"));
      },
      invalid, {"\"model\"", "dimension 1", "dimension 2"}));
  EXPECT_TRUE(throws_error([] { Sharding(sharding_mesh24(), P("data", none), 1); }, invalid,
                           {"2 dimensions", "1", "mesh<"}));
  EXPECT_TRUE(throws_error(
      [] {
        Sharding(sharding_mesh24(), P({{"model", 1, 3}}));
      },
      invalid, {"dimension 0", "\"model\":(1)3", "4"}));
  EXPECT_TRUE(throws_error([] { Sharding(sharding_mesh24(), P("data")).with_unreduced({"data"}); },
                           invalid, {"dimension 0", "unreduced"}));
  EXPECT_TRUE(throws_error([] { Sharding(sharding_mesh24(), P("data", none)).shard_shape({8}); },
                           invalid, {"2 dimensions", "(8)"}));
  EXPECT_TRUE(throws_error([] { Sharding(sharding_mesh24(), P("data")).slice({8}, 8); },
                           ErrorCode::kOutOfRange, {"position 8"}));
  EXPECT_TRUE(throws_error([] { Sharding(sharding_mesh24(), P("data")).shard_shape({-1}); },
                           invalid, {"dimension 0", "negative"}));
}

// Shardings over meshes derived from one root are expressed over the root.
TEST(Sharding, DerivedMeshesMeetOnTheirBase) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  EXPECT_EQ(Sharding(mesh.slice("y"), P("y", none)), Sharding(mesh, P("y", none)));
  EXPECT_EQ(Sharding(mesh.flatten("xy"), P("xy")), Sharding(mesh, P(axes("x", "y"))));
  EXPECT_EQ(Sharding(mesh.permute({"y", "x"}).flatten("yx"), P(none, "yx")),
            Sharding(mesh, P(none, axes("y", "x"))));
  Mesh split = mesh.unflatten("y", {{"a", 2}, {"b", 2}});
  EXPECT_EQ(Sharding(split, P("b", {"x", "a"})),
            Sharding(mesh, P(AxisRef("y", 2, 2), {"x", {"y", 1, 2}})));
  EXPECT_TRUE(Sharding(split, P(unconstrained)).mesh().is_same_object(mesh));
  Mesh wide = mesh.reshape({{"p", 4}, {"q", 2}});
  EXPECT_EQ(Sharding(wide, P("p", "q")), Sharding(mesh, P({"x", {"y", 1, 2}}, AxisRef("y", 2, 2))));
}

// If axes do not match those of the root, each device still holds what the spec says.
TEST(Sharding, CutsBetweenTheAxesOfTheRootHaveAMeshOfTheirOwn) {
  Mesh mesh({{"x", 6}, {"y", 4}});
  Mesh other = mesh.reshape({{"a", 8}, {"b", 3}});
  Sharding sharding(other, P("a", "b"));
  EXPECT_EQ(sharding.mesh(), Mesh({{"a", 8}, {"b", 3}}));
  EXPECT_TRUE(sharding.mesh().same_devices(mesh));

  Mesh slice = mesh.unsqueeze("one", 0).reshape({{"a", 8}, {"b", 3}}).slice("b");
  Sharding rows(slice, P("b"));
  EXPECT_EQ(rows.mesh().size(), 24);
  for (std::int64_t device = 0; device < 24; ++device)
    EXPECT_EQ(rows.slice({3}, *rows.mesh().position(device))[0].start, device % 3);
}

TEST(Sharding, ErrorsOverDerivedMeshesNameTheirAxes) {
  Mesh slice = Mesh({{"x", 2}, {"y", 4}}).slice("y");
  EXPECT_TRUE(throws_error([&] { Sharding(slice, P("x")); }, ErrorCode::kNotFound,
                           {"\"x\"", "sharding_test.cc"}));
  EXPECT_TRUE(throws_error([&] { Sharding(slice, P("y", "y")); }, ErrorCode::kInvalidArgument,
                           {"\"y\"", "twice", "sharding_test.cc"}));
}

TEST(Sharding, PositionsAreAxesOfTheMeshThatTheSpecMeets) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  EXPECT_EQ(Sharding(mesh, P(0, none)), Sharding(mesh, P("data", none)));
  EXPECT_EQ(Sharding(mesh, P(none, 1)).spec(), P(none, "model"));
  EXPECT_EQ(Sharding(mesh, P({1, 0})), Sharding(mesh, P({"model", "data"})));
  EXPECT_EQ(Sharding(mesh, P({"data", 1}, unconstrained)),
            Sharding(mesh, P({"data", "model"}, unconstrained)));
  EXPECT_EQ(Sharding(mesh, P(0), 3), Sharding(mesh, P("data"), 3));
  EXPECT_EQ(Sharding(mesh, P(0)).with_replicated({AxisRef(1)}),
            Sharding(mesh, P("data")).with_replicated({AxisRef("model")}));
  // Positions refer to the given mesh, not to the one that it derives from.
  Mesh slice = mesh.slice({"model"});
  EXPECT_EQ(Sharding(slice, P(0)), Sharding(slice, P("model")));
  Mesh turned({{"model", 4}, {"data", 2}});
  EXPECT_EQ(Sharding(turned, P(0)).spec(), P("model"));
  EXPECT_TRUE(throws_error([&] { Sharding(mesh, P(none, 2)); }, ErrorCode::kInvalidArgument,
                           {"sharding_test.cc:", "no axis at position 2", "data=2, model=4",
                            "2 axes", "dimension 1 of P(none, 2)"}));
  EXPECT_TRUE(throws_error([&] { Sharding(mesh, P(0, "data")); }, ErrorCode::kInvalidArgument,
                           {"\"data\" is used twice: by dimension 0 and by dimension 1"}));
}

}  // namespace
}  // namespace meshard
