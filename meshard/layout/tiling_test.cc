#include <algorithm>

#include "meshard/layout/algebra.h"
#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/values.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of logical_divide for a layout; false where it refuses.
bool check_logical_divide(const Layout& a, const Layout& b) {
  Result<Layout> result = logical_divide(a, b);
  if (!result) return false;
  std::string text = cat(a, " by ", b, " -> ", *result);
  Layout rest = complement(b, a.size()).value(), coalesced = coalesce(a);
  EXPECT_EQ(result->rank(), 2u) << text;
  EXPECT_EQ(result->mode(0).size(), b.size()) << text;
  EXPECT_EQ(result->mode(1).size(), rest.size()) << text;
  for (std::int64_t i = 0; i < b.size(); ++i)
    for (std::int64_t j = 0; j < rest.size(); ++j)
      if ((*result)(IntTuple{i, j}) != coalesced(b(i) + rest(j))) {
        ADD_FAILURE() << text << " at " << i << ", " << j;
        return true;
      }
  return true;
}

TEST(LogicalDivide, Postconditions) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 3000 && !testing::Test::HasFailure(); ++round) {
    Layout a = round % 2 == 0 ? random_layout(random) : random_permuted_layout(random);
    std::int64_t size = random.between(1, 6), stride = random.between(1, 6);
    answered += check_logical_divide(a, Layout(IntTuple(size), IntTuple(stride)));
  }
  EXPECT_GT(answered, 1000);
  for (const Layout& a : picked_layouts())
    for (const Layout& b : picked_layouts())
      if (a.size() * b.size() < 5000) check_logical_divide(a, b);
}

// A tile that divides a layout keeps every value exactly once.
TEST(LogicalDivide, IsAPermutationWhereTheTileDivides) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout a = random_permuted_layout(random);
    std::int64_t tile = random.between(1, a.size());
    if (a.size() % tile != 0) continue;
    Result<Layout> result = logical_divide(a, Tiler(tile));
    if (!result) continue;
    std::vector<std::int64_t> values = values_of(*result);
    std::sort(values.begin(), values.end());
    for (std::int64_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(values.at(static_cast<std::size_t>(i)), i) << a.to_string() << " by " << tile;
  }
}

TEST(LogicalDivide, Examples) {
  auto text = [](const char* a, const char* b) {
    return logical_divide(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("24:1", "4"), "(4,6):(1,4)");
  EXPECT_EQ(text("24:1", "4:6"), "(4,6):(6,1)");
  EXPECT_EQ(text("(4,6):(6,1)", "<2, 3>"), "((2,2),(3,2)):((6,12),(1,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<_, 3>"), "(4,(3,2)):(6,(1,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<2>"), "((2,2),6):((6,12),1)");
  EXPECT_EQ(text("(4,6):(6,1)", "_"), "(4,6):(6,1)");
  EXPECT_EQ(text("3:1", "4"), "(4,1):(1,0)");  // the tile is larger than the layout
}

TEST(LogicalDivide, Refusals) {
  auto refuses = [](const char* a, const char* b, const std::vector<std::string>& parts) {
    return throws_error(
        [&] { (void)logical_divide(Layout::parse(a).value(), Tiler::parse(b).value()).value(); },
        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refuses("(4,6):(6,1)", "<2, 3, 4>",
                      {"[logical_divide]", "<2, 3, 4>", "3 elements", "2 modes"}));
  EXPECT_TRUE(refuses("(3,4):(100,1)", "6", {"[composition]", "extents that work"}));
  EXPECT_TRUE(refuses("12:1", "(2,2):(1,1)", {"[complement]", "(2,2):(1,1)"}));
}

// The values of logical_divide, at ((i, j), (k, l)) of ((tile, rest), (tile, rest)).
TEST(ZippedDivide, GathersWhatLogicalDivideHas) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 1000; ++round) {
    Layout a(IntTuple{random.between(1, 12), random.between(1, 12), random.between(1, 3)});
    Tiler tiler{random.between(1, 6), Layout(IntTuple(random.between(1, 4)), random.between(1, 3))};
    Result<Layout> logical = logical_divide(a, tiler), zipped = zipped_divide(a, tiler);
    ASSERT_EQ(logical.ok(), zipped.ok());
    if (!logical) continue;
    ++answered;
    ASSERT_TRUE(is_gathered(random, *logical, *zipped)) << zipped->to_string();
  }
  EXPECT_GT(answered, 300);
}

TEST(ZippedDivide, Examples) {
  auto text = [](const char* a, const char* b) {
    return zipped_divide(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2, 3>"), "((2,3),(2,2)):((6,1),(12,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<_, 3>"), "((1,3),(4,2)):((0,1),(6,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<2>"), "((2),(2,6)):((6),(12,1))");
  EXPECT_EQ(text("24:1", "_"), "(1,24):(0,1)");
  EXPECT_EQ(text("24:1", "4"), "(4,6):(1,4)");
  EXPECT_TRUE(throws_error(
      [] {
        (void)zipped_divide(Layout(IntTuple{4, 6}), Tiler{2, 3, 4}).value();
      },
      ErrorCode::kInvalidArgument, {"[zipped_divide]", "3 elements", "2 modes"}));
}

// @post of tiled_divide
TEST(TiledDivide, IsTheFunctionOfZippedDivide) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 500; ++round) {
    Layout a(IntTuple{random.between(1, 12), random.between(1, 12), random.between(1, 3)});
    Tiler tiler{random.between(1, 6), Layout(IntTuple(random.between(1, 4)), random.between(1, 3))};
    Result<Layout> zipped = zipped_divide(a, tiler), tiled = tiled_divide(a, tiler);
    ASSERT_EQ(tiled.ok(), zipped.ok());
    if (!tiled) continue;
    ++answered;
    EXPECT_EQ(tiled->rank(), 4u);
    EXPECT_EQ(values_of(*tiled), values_of(*zipped));
  }
  EXPECT_GT(answered, 150);
}

TEST(TiledDivide, Examples) {
  auto text = [](const char* a, const char* b) {
    return tiled_divide(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2, 3>"), "((2,3),2,2):((6,1),12,3)");
  EXPECT_EQ(text("(4,6):(6,1)", "6:2"), "(6,2,2):(2,12,1)");
  EXPECT_EQ(text("24:1", "_"), "(1,24):(0,1)");
  EXPECT_TRUE(throws_error(
      [] {
        (void)tiled_divide(Layout(IntTuple{3, 4}), Tiler{2, 2, 2}).value();
      },
      ErrorCode::kInvalidArgument, {"3 elements", "2 modes"}));
}

// @post of logical_product for a layout; false where it refuses.
bool check_logical_product(const Layout& a, const Layout& b) {
  Result<Layout> result = logical_product(a, b);
  if (!result) return false;
  std::string text = cat(a, " times ", b, " -> ", *result);
  Layout places = complement(a, a.size() * b.cosize()).value();
  EXPECT_EQ(result->mode(0), a) << text;
  EXPECT_EQ(result->mode(1).size(), b.size()) << text;
  if (is_orthogonal(a)) {
    EXPECT_EQ(is_injective(*result), is_injective(a) && is_injective(b)) << text;
  }
  for (std::int64_t i = 0; i < a.size(); ++i)
    for (std::int64_t j = 0; j < b.size(); ++j)
      if ((*result)(IntTuple{i, j}) != a(i) + places(b(j))) {
        ADD_FAILURE() << text << " at " << i << ", " << j;
        return true;
      }
  return true;
}

TEST(LogicalProduct, Postconditions) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 2000 && !testing::Test::HasFailure(); ++round) {
    Layout a = round % 2 == 0 ? random_layout(random) : random_permuted_layout(random);
    Layout b(IntTuple{random.between(1, 4), random.between(1, 4)},
             IntTuple{random.between(0, 9), random.between(0, 3)});
    if (a.size() * b.size() < 1000) answered += check_logical_product(a, b);
  }
  EXPECT_GT(answered, 600);
  for (const Layout& a : picked_layouts())
    for (const Layout& b : picked_layouts())
      if (a.size() * b.size() < 1000) check_logical_product(a, b);
}

TEST(LogicalProduct, Examples) {
  auto text = [](const char* a, const char* b) {
    return logical_product(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("4:1", "3:1"), "(4,3):(1,4)");
  EXPECT_EQ(text("(2,2):(4,1)", "6:1"), "((2,2),(3,2)):((4,1),(8,2))");
  EXPECT_EQ(text("(2,2):(4,1)", "(4,2):(2,1)"), "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(text("(4,6):(6,1)", "<2:2, 3:1>"), "((4,2),(6,3)):((6,2),(1,6))");
  EXPECT_EQ(text("(4,6):(6,1)", "_"), "(4,6):(6,1)");
}

TEST(LogicalProduct, Refusals) {
  auto refuses = [](const char* a, const char* b, const std::vector<std::string>& parts) {
    return throws_error(
        [&] { (void)logical_product(Layout::parse(a).value(), Tiler::parse(b).value()).value(); },
        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refuses("4:1", "3", {"[logical_product] of 4:1 and 3", "pass 3:1"}));
  EXPECT_TRUE(refuses("(4,6):(6,1)", "<_, 3>", {"an integer"}));
  EXPECT_TRUE(refuses("4:1", "<2:1, 3:1>", {"2 elements", "1 modes"}));
  EXPECT_TRUE(refuses("4:4", "4:3", {"[composition]"}));
  EXPECT_TRUE(refuses("(2,3):(2,1)", "2:1", {"[complement]"}));
  EXPECT_TRUE(refuses("4:1", "2:4611686018427387903", {"64 bits"}));
}

// The values of logical_product, at ((i, j), (k, l)) of ((mode, copies), (mode, copies)).
TEST(ZippedProduct, GathersWhatLogicalProductHas) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 1000; ++round) {
    Layout a(IntTuple{random.between(1, 5), random.between(1, 5), random.between(1, 3)});
    auto copies = [&] { return Layout(IntTuple(random.between(1, 4)), random.between(1, 3)); };
    Tiler tiler{copies(), copies()};
    Result<Layout> logical = logical_product(a, tiler), zipped = zipped_product(a, tiler);
    ASSERT_EQ(logical.ok(), zipped.ok());
    if (!logical) continue;
    ++answered;
    ASSERT_TRUE(is_gathered(random, *logical, *zipped)) << zipped->to_string();
  }
  EXPECT_GT(answered, 300);
}

TEST(ZippedProduct, Examples) {
  auto text = [](const char* a, const char* b) {
    return zipped_product(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2:2, 3:1>"), "((4,6),(2,3)):((6,1),(2,6))");
  EXPECT_EQ(text("(2,3):(3,1)", "(2,2):(2,1)"), "((2,3),(2,2)):((3,1),(12,6))");
  EXPECT_EQ(text("6:1", "4:1"), "(6,4):(1,6)");
  EXPECT_TRUE(throws_error([] { (void)zipped_product(Layout(IntTuple(4)), 2).value(); },
                           ErrorCode::kInvalidArgument, {"[logical_product]", "an integer"}));
}

// @post of tiled_product
TEST(TiledProduct, IsTheFunctionOfZippedProduct) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 500; ++round) {
    Layout a(IntTuple{random.between(1, 5), random.between(1, 5), random.between(1, 3)});
    auto copies = [&] { return Layout(IntTuple(random.between(1, 4)), random.between(1, 3)); };
    Tiler tiler{copies(), copies()};
    Result<Layout> zipped = zipped_product(a, tiler), tiled = tiled_product(a, tiler);
    ASSERT_EQ(tiled.ok(), zipped.ok());
    if (!tiled) continue;
    ++answered;
    EXPECT_EQ(tiled->rank(), 4u);
    EXPECT_EQ(values_of(*tiled), values_of(*zipped));
  }
  EXPECT_GT(answered, 150);
}

TEST(TiledProduct, Examples) {
  auto text = [](const char* a, const char* b) {
    return tiled_product(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2:2, 3:1>"), "((4,6),2,3):((6,1),2,6)");
  EXPECT_EQ(text("(2,2):(4,1)", "6:1"), "((2,2),3,2):((4,1),8,2)");
  EXPECT_TRUE(throws_error([] { (void)tiled_product(Layout(IntTuple(4)), Tiler{2}).value(); },
                           ErrorCode::kInvalidArgument, {"[logical_product]", "an integer"}));
}

}  // namespace
}  // namespace meshard
