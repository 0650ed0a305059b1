#include "meshard/layout/algebra.h"
#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/values.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Tiler, Kinds) {
  EXPECT_EQ(Tiler().kind(), Tiler::Kind::kNone);
  EXPECT_EQ(Tiler().layout().to_string(), "1:0");
  Tiler integer = 4, layout = Layout({2, 2}, {4, 1}), tuple = {2, Tiler(), layout};
  EXPECT_EQ(integer.kind(), Tiler::Kind::kInteger);
  EXPECT_EQ(integer.layout().to_string(), "4:1");
  EXPECT_EQ(layout.kind(), Tiler::Kind::kLayout);
  EXPECT_TRUE(layout.tilers().empty());
  ASSERT_EQ(tuple.kind(), Tiler::Kind::kTuple);
  ASSERT_EQ(tuple.tilers().size(), 3u);
  EXPECT_EQ(tuple.tilers()[0], Tiler(2));
  EXPECT_EQ(tuple.tilers()[2], layout);
  EXPECT_FALSE(Tiler(4) == Tiler(Layout(IntTuple(4))));
  EXPECT_EQ(Tiler(tuple.tilers()), tuple);
  EXPECT_TRUE(throws_error([] { Tiler(0); }, ErrorCode::kInvalidArgument, {"below 1"}));
}

TEST(Tiler, ParsesWhatItPrints) {
  for (const char* text :
       {"_", "4", "4:1", "(2,4):(4,1)", "<>", "<2>", "<2, _, 3:2>", "<<2, (2,2):(1,8)>, _>"}) {
    Result<Tiler> parsed = Tiler::parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->to_string(), text);
  }
  for (const char* text : {"", "<2", "(2,4)", "4:", "<2,>", "0", "_:1"})
    EXPECT_FALSE(Tiler::parse(text).ok()) << text;
  EXPECT_TRUE(throws_error([] { (void)Tiler::parse(std::string(100'000, '<')).value(); },
                           ErrorCode::kInvalidArgument, {"more than 100 levels deep"}));
}

// @post of composition; false where it refuses.
bool check_composition(const Layout& a, const Layout& b) {
  Result<Layout> result = composition(a, b);
  if (!result) return false;
  std::string text = cat(a, " after ", b, " -> ", *result);
  EXPECT_EQ(result->size(), b.size()) << text;
  if (!b.shape().is_integer()) {
    EXPECT_EQ(result->rank(), b.rank()) << text;
    for (std::size_t k = 0; k < b.rank() && k < result->rank(); ++k)
      EXPECT_EQ(result->mode(k).size(), b.mode(k).size()) << text << ", mode " << k;
  }
  Layout coalesced = coalesce(a);
  for (std::int64_t i = 0; i < b.size(); ++i) {
    EXPECT_EQ((*result)(i), coalesced(b(i))) << text << " at " << i;
    if (b(i) >= 0 && b(i) < a.size()) {
      EXPECT_EQ((*result)(i), a(b(i))) << text << " at " << i;
    }
    if (testing::Test::HasFailure()) return true;
  }
  return true;
}

// By brute force: true if coalesce(outer)(b(.)) is a layout with b's modes.
bool composition_exists(const Layout& outer, const Layout& b) {
  Layout a = coalesce(outer);
  std::span<const std::int64_t> sizes = b.shape().leaves(), strides = b.stride().leaves();
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < sizes[k]; ++i) values.push_back(a(i * strides[k]));
    if (!from_values(values)) return false;
  }
  for (std::int64_t i = 0; i < b.size(); ++i) {
    std::int64_t rest = i, sum = 0;
    for (std::size_t k = sizes.size(); k-- > 0; rest /= sizes[k])
      sum += a(rest % sizes[k] * strides[k]);
    if (sum != a(b(i))) return false;
  }
  return true;
}

struct Tally {
  int answered = 0, refused = 0, lucky = 0;
  void add(const Layout& a, const Layout& b) {
    if (check_composition(a, b)) {
      ++answered;
    } else {
      ++refused;
      lucky += composition_exists(a, b);
    }
  }
};

TEST(Composition, PostconditionsForPickedLayouts) {
  for (const Layout& a : picked_layouts())
    for (const Layout& b : picked_layouts()) {
      check_composition(a, b);
      if (testing::Test::HasFailure()) return;
    }
}

// The two rules also reject some compositions that exist by luck, such as 2 indices 3 apart within
// a mode of 4. About 1 in 8 pairs is rejected here, and about 4 in 10 of these are such cases.
TEST(Composition, Postconditions) {
  TestRandom random;
  Tally tally;
  for (int round = 0; round < 8000 && !testing::Test::HasFailure(); ++round)
    tally.add(round % 2 == 0 ? random_permuted_layout(random) : random_signed_layout(random),
              random_layout(random));
  EXPECT_GT(tally.answered, 4000);
  EXPECT_GT(tally.refused - tally.lucky, 200);
}

// Here 6 in 10 are rejected, and 1 in 6 of these although a layout exists.
TEST(Composition, PostconditionsForOneMode) {
  TestRandom random;
  auto draw = [&](std::int64_t modes, std::int64_t size, std::int64_t low, std::int64_t high) {
    IntVector sizes, strides;
    for (; modes > 0; --modes) {
      sizes.push_back(random.between(1, size));
      strides.push_back(random.between(low, high));
    }
    return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
  };
  Tally tally;
  for (int round = 0; round < 20000 && !testing::Test::HasFailure(); ++round)
    tally.add(draw(random.between(1, 4), 9, -20, 40), draw(1, 24, 0, 30));
  EXPECT_GT(tally.answered, 4000);
  EXPECT_GT(tally.refused - tally.lucky, 4000);
}

// Compact right sides that cut a mode into several are rejected only if no layout exists.
TEST(Composition, CompactRightSidesAreRefusedOnlyWhereThereIsNoLayout) {
  TestRandom random;
  int refused = 0;
  for (int round = 0; round < 3000 && !testing::Test::HasFailure(); ++round) {
    Layout a = random_layout(random);
    IntVector sizes;
    for (std::int64_t left = a.size(); left > 1;) {
      std::int64_t factor = random.between(1, left);
      while (left % factor != 0) --factor;
      sizes.push_back(factor);
      left /= factor;
    }
    Layout b(IntTuple::flat(sizes));
    if (check_composition(a, b)) continue;
    ++refused;
    EXPECT_FALSE(composition_exists(a, b)) << a.to_string() << " after " << b.to_string();
  }
  EXPECT_GT(refused, 100);
}

// Beyond a.size(), the first mode of coalesce(a) continues.
TEST(Composition, ValuesOfBBeyondA) {
  auto text = [](const char* a, const char* b) {
    return composition(Layout::parse(a).value(), Layout::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(3,4):(100,1)", "24:1"), "(6,4):(100,1)");
  EXPECT_EQ(text("(1,4):(11,1)", "8:1"), "8:1");
  EXPECT_EQ(text("1:33", "4:13"), "4:0");
}

TEST(Composition, NegativeStrides) {
  EXPECT_TRUE(check_composition(Layout(IntTuple(6), IntTuple(3)), Layout({2, 2}, {-1, 4})));
  EXPECT_TRUE(check_composition(Layout({2, 4}, {-8, -1}), Layout(IntTuple(4), IntTuple(2))));
  EXPECT_FALSE(check_composition(Layout({3, 4}, {100, 1}), Layout(IntTuple(2), IntTuple(-1))));
}

TEST(Composition, Examples) {
  auto text = [](const char* a, const char* b) {
    return composition(Layout::parse(a).value(), Layout::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(1,4)", "(8,3):(3,1)"), "((4,2),3):((1,12),4)");
  EXPECT_EQ(text("(10,8,6,4):(7,5,3,2)", "6:12"), "(3,2):(5,9)");
  EXPECT_EQ(text("12:2", "(4,3):(3,1)"), "(4,3):(6,2)");
  EXPECT_EQ(text("(16,16):(1024,1)", "(4,4,16):(64,16,1)"), "(4,4,16):(4096,1024,1)");
  EXPECT_EQ(text("(2,3):(7,1)", "((),(2,1)):((),(0,3))"), "((),(2,1)):((),(0,7))");
  EXPECT_EQ(text("8:1", "1:3"), "1:3");
}

TEST(Composition, MessagesSayWhatWouldDo) {
  auto refuses = [](const char* a, const char* b, const std::vector<std::string>& parts) {
    return throws_error(
        [&] { (void)composition(Layout::parse(a).value(), Layout::parse(b).value()).value(); },
        ErrorCode::kInvalidArgument, parts);
  };
  // Published implementations answer 4:1 and 4:3.
  EXPECT_TRUE(refuses("(3,4):(100,1)", "6:1",
                      {"(3,4):(100,1) after 6:1", "6 indices 1 apart cut mode 4:1",
                       "extents that work: 1 to 4, or else a multiple of 4"}));
  EXPECT_TRUE(refuses("(6,4):(1,3)", "6:1", {"extents that work: 1 to 4"}));
  EXPECT_TRUE(refuses("(3,4,2):(100,10,1)", "12:1",
                      {"extents that work: 2 times 1 to 4, or else a multiple of 8"}));
  EXPECT_TRUE(refuses("(4,6,8,10):(2,3,5,7)", "6:12",
                      {"6 indices 12 apart cut mode 10:7", "a divisor or a multiple of 10"}));
  EXPECT_TRUE(refuses("(3,4,2):(100,10,1)", "2:6",
                      {"cut mode 4:10", "2 times a divisor or a multiple of 4"}));
  EXPECT_TRUE(refuses("(2,2):(1,2)", "(2,2):(1,1)", {"together beyond mode 2:2"}));
  EXPECT_TRUE(refuses("(3,4):(100,1)", "2:-1", {"2:-1", "negative"}));
  EXPECT_TRUE(refuses("4:4611686018427387904", "2:4", {"64 bits"}));
}

TEST(Composition, ByTiler) {
  Layout a = Layout::parse("(4,(2,6)):(12,(6,1))").value();
  EXPECT_EQ(composition(a, Tiler()).value(), a);
  EXPECT_EQ(composition(a, Tiler(6))->to_string(), "6:1");
  EXPECT_EQ(composition(a, Tiler{2})->to_string(), "(2,(2,6)):(12,(6,1))");
  EXPECT_EQ(
      composition(a, Tiler{Tiler(), Tiler{Tiler(), Layout(IntTuple(3), IntTuple(2))}})->to_string(),
      "(4,(2,3)):(12,(6,2))");
  EXPECT_TRUE(throws_error(
      [&] {
        (void)composition(a, Tiler{1, 1, 1}).value();
      },
      ErrorCode::kInvalidArgument, {"<1, 1, 1>", "3 elements", "2 modes"}));
}

}  // namespace
}  // namespace meshard
