#include "meshard/mesh/rank_map.h"

#include <algorithm>

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

TEST(RankMap, ParsesWhatItPrints) {
  for (const RankMap& map : {RankMap::identity(3), RankMap::affine(4, 3, 100000),
                             RankMap::affine(99, -1, 50), RankMap::listed({5, 1, 3, 2})}) {
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
