#include "meshard/mesh/rank_map.h"

#include <algorithm>
#include <numeric>

#include "meshard/layout/text_scanner.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

TEST(RankMap, FindInvertsEveryKind) {
  for (const RankMap& map : {RankMap::identity(6), RankMap::affine(3, 2, 5),
                             RankMap::affine(9, -3, 4), RankMap::listed({5, 3, 1, 0, 2, 4}),
                             RankMap::listed({1000000, 7, 500}), RankMap::listed({42})}) {
    SCOPED_TRACE(map.to_string());
    std::vector<std::int64_t> ids;
    for (std::int64_t p = 0; p < map.size(); ++p) {
      ids.push_back(map[p]);
      EXPECT_EQ(map.find(map[p]), p);
    }
    for (std::int64_t id = -3; id < 1100; ++id)
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
        EXPECT_FALSE(map.find(id)) << id;
      }
  }
}

TEST(RankMap, AnAffineListIsStoredAsAffine) {
  EXPECT_TRUE(RankMap::listed({4, 5, 6, 7}).is_affine());
  EXPECT_EQ(RankMap::listed({4, 5, 6, 7}), RankMap::affine(4, 1, 4));
  EXPECT_EQ(RankMap::listed({4, 5, 6, 7}).hash(), RankMap::affine(4, 1, 4).hash());
  EXPECT_TRUE(RankMap::listed({0, 1, 2}).is_identity());
  EXPECT_FALSE(RankMap::listed({0, 1, 3}).is_affine());
  EXPECT_EQ(RankMap::listed({0, 1, 3}), RankMap::listed({0, 1, 3}));
  EXPECT_FALSE(RankMap::listed({0, 1, 3}) == RankMap::listed({0, 3, 1}));
}

// Lists that a layout describes are stored as one: the devices of every other node, reversed rows.
TEST(RankMap, AStridedListIsStoredAsStrided) {
  RankMap nodes = RankMap::listed({0, 1, 2, 3, 8, 9, 10, 11});
  EXPECT_EQ(nodes.find(10), 6);
  EXPECT_FALSE(nodes.find(4));
  EXPECT_EQ(nodes, RankMap::identity(16).view(0, [] {
    Digits digits;
    digits.push_back({2, 8});
    digits.push_back({4, 1});
    return digits;
  }()));
  EXPECT_EQ(RankMap::listed({1, 0, 3, 2}).find(3), 2);
  EXPECT_EQ(RankMap::listed({0, 3, 2, 5, 4, 7}).find(5), 3);  // (3,2):(2,3) interlocks
}

// A view has the ids that looking up each one gives, and in any form equals the list of these ids.
TEST(RankMap, ViewsLookAtTheSameDevices) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    std::int64_t whole = 1;
    std::vector<Digit> modes;
    for (std::int64_t i = random.between(1, 4); i > 0; --i) {
      modes.push_back({random.between(1, 4), whole});
      whole *= modes.back().size;
    }
    std::vector<std::int64_t> ids(static_cast<std::size_t>(whole));
    std::iota(ids.begin(), ids.end(), random.between(0, 3));
    std::int64_t kind = random.between(0, 3);
    if (kind == 1) std::reverse(ids.begin(), ids.end());
    if (kind >= 2) std::shuffle(ids.begin(), ids.end(), random);
    if (kind == 3)
      for (std::int64_t& id : ids) id *= 100;
    RankMap map = RankMap::listed(ids);
    std::shuffle(modes.begin(), modes.end(), random);
    Digits digits;
    for (std::size_t i = 0; i < modes.size() && random.between(0, 2) > 0; ++i)
      digits.push_back(modes[i]);
    Digits rest = Digits::whole(whole).without(digits);
    std::int64_t offset = rest.offset(random.between(0, rest.size() - 1));
    RankMap view = map.view(offset, digits);
    std::vector<std::int64_t> expected;
    for (std::int64_t i = 0; i < digits.size(); ++i)
      expected.push_back(ids[static_cast<std::size_t>(offset + digits.offset(i))]);
    SCOPED_TRACE(map.to_string() + " at " + std::to_string(offset) + " " +
                 digits.layout().to_string());
    ASSERT_EQ(view.size(), digits.size());
    for (std::int64_t i = 0; i < view.size(); ++i)
      ASSERT_EQ(view[i], expected[static_cast<std::size_t>(i)]);
    RankMap listed = RankMap::listed(expected);
    ASSERT_EQ(view, listed);
    ASSERT_EQ(view.hash(), listed.hash());
    ASSERT_TRUE(map.contains(view));
    ASSERT_EQ(view.contains(map), view.size() == map.size());
    std::vector<std::int64_t> ascending = expected;
    std::sort(ascending.begin(), ascending.end());
    ASSERT_EQ(view.sorted(), RankMap::listed(ascending));
    for (std::size_t k = 0; k < ascending.size(); ++k)
      ASSERT_EQ(view.count_below(ascending[k]), static_cast<std::int64_t>(k));
    for (std::int64_t id : ids) {
      auto place = std::find(expected.begin(), expected.end(), id);
      bool inside = place != expected.end();
      ASSERT_EQ(view.find(id).has_value(), inside);
      ASSERT_EQ(view.find(id).value_or(-1), inside ? place - expected.begin() : -1);
    }
    Result<RankMap> parsed = parse_whole("rank map", view.to_string(), RankMap::read);
    ASSERT_EQ(parsed.value(), view);
  }
}

TEST(RankMap, ARegularViewOfAListPrintsByItsRule) {
  std::vector<std::int64_t> ids(64);
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  std::swap(ids[62], ids[40]);
  RankMap list = RankMap::listed(ids);
  Digits first;
  first.push_back({32, 1});
  EXPECT_EQ(list.view(0, first).to_string(), "[0,1,...,31]");
  EXPECT_TRUE(list.view(0, first).simplest().is_identity());
  EXPECT_EQ(list.simplest(), list);
}

// Two steps in a mode of size three: from its last place, they carry into the next mode.
TEST(RankMap, AViewThatCarries) {
  RankMap map = RankMap::listed({1, 2, 3, 9, 10, 11});
  Digits pairs = Digits::whole(2);
  EXPECT_EQ(map.view(0, pairs), RankMap::listed({1, 2}));
  EXPECT_EQ(map.view(2, pairs), RankMap::listed({3, 9}));
  EXPECT_EQ(map.view(4, pairs), RankMap::listed({10, 11}));
}

TEST(RankMap, Meets) {
  RankMap low = RankMap::identity(8), high = RankMap::affine(6, 1, 4),
          odd = RankMap::affine(1, 2, 4);
  EXPECT_TRUE(low.meets(high));
  EXPECT_FALSE(RankMap::identity(6).meets(high));
  EXPECT_FALSE(odd.meets(RankMap::affine(0, 2, 9)));
  EXPECT_TRUE(odd.meets(RankMap::listed({40, 13, 7})));
  EXPECT_FALSE(odd.meets(RankMap::listed({40, 13, 8})));
}

TEST(RankMap, SameDevices) {
  RankMap up = RankMap::affine(0, 2, 4), down = RankMap::affine(6, -2, 4);
  RankMap mixed = RankMap::listed({2, 0, 6, 4}), other = RankMap::listed({2, 0, 6, 5});
  EXPECT_TRUE(up.same_devices(down));
  EXPECT_TRUE(up.same_devices(mixed));
  EXPECT_TRUE(mixed.same_devices(down));
  EXPECT_FALSE(up.same_devices(other));
  EXPECT_FALSE(other.same_devices(mixed));
  EXPECT_FALSE(up.same_devices(RankMap::affine(0, 3, 3)));
  EXPECT_FALSE(RankMap::affine(0, 2, 3).same_devices(RankMap::affine(0, 1, 5)));
}

RankMap two_nodes_of_many() {
  Digits digits;
  digits.push_back({2, 4096});
  digits.push_back({512, 1});
  return RankMap::identity(8192).view(512, digits);
}

TEST(RankMap, ParsesWhatItPrints) {
  EXPECT_EQ(two_nodes_of_many().to_string(), "[512+(2,512):(4096,1)]");
  for (const char* text : {"[0+(2,2):(1,1)]", "[0+2:0]", "[1+2:-4]", "[0+(2,3):(1)]", "[-1+2:4]"})
    EXPECT_FALSE(parse_whole("rank map", text, RankMap::read).ok()) << text;
  for (const RankMap& map :
       {RankMap::identity(3), RankMap::affine(4, 3, 100000), RankMap::affine(99, -1, 50),
        RankMap::listed({5, 1, 3, 2}), RankMap::identity(1 << 20).view(4, Digits::whole(4)),
        two_nodes_of_many()}) {
    std::string text = map.to_string();
    Result<RankMap> parsed = parse_whole("rank map", text, RankMap::read);
    EXPECT_EQ(parsed.value(), map) << text;
    EXPECT_LT(text.size(), 40u);
  }
}

TEST(RankMap, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        RankMap::listed({3, 1, 4, 1});
      },
      ErrorCode::kInvalidArgument, {"device 1", "twice", "positions 1 and 3"}));
  EXPECT_TRUE(throws_error(
      [] {
        RankMap::listed({1000000, 5, 1000000});
      },
      ErrorCode::kInvalidArgument, {"device 1000000", "positions 0 and 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        RankMap::listed({3, 3});
      },
      ErrorCode::kInvalidArgument, {"twice"}));
  EXPECT_TRUE(throws_error(
      [] {
        RankMap::listed({0, -1});
      },
      ErrorCode::kInvalidArgument, {"negative", "-1"}));
  EXPECT_TRUE(throws_error([] { RankMap::listed({}); }, ErrorCode::kInvalidArgument, {"empty"}));
  EXPECT_TRUE(throws_error([] { RankMap::affine(2, -1, 4); }, ErrorCode::kInvalidArgument,
                           {"non-negative"}));
}

}  // namespace
}  // namespace meshard
