#include "meshard/mesh/digits.h"

#include <algorithm>
#include <set>

#include "meshard/layout/values.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

Digits digits_of(std::initializer_list<Digit> modes) {
  Digits digits;
  for (const Digit& mode : modes) digits.push_back(mode);
  return digits;
}

// Some digits of a random mixed radix, in random order, and the product of all its sizes.
struct RandomDigits {
  Digits digits;
  std::int64_t whole = 1;
};

RandomDigits random_digits(TestRandom& random) {
  RandomDigits result;
  std::vector<Digit> modes;
  for (std::int64_t i = random.between(0, 5); i > 0; --i) {
    Digit mode{random.between(1, 4), result.whole};
    result.whole *= mode.size;
    if (random.between(0, 1) == 0) modes.push_back(mode);
  }
  std::shuffle(modes.begin(), modes.end(), random);
  for (const Digit& mode : modes) result.digits.push_back(mode);
  return result;
}

TEST(Digits, NeighborsThatContinueOneAnotherAreOne) {
  EXPECT_EQ(digits_of({{2, 4}, {4, 1}}), Digits::whole(8));
  EXPECT_EQ(digits_of({{4, 1}, {2, 4}}).modes().size(), 2u);
  EXPECT_EQ(digits_of({{1, 7}}), Digits());
  EXPECT_EQ(digits_of({{2, 8}, {4, 1}}).layout().to_string(), "(2,4):(8,1)");
}

// offset and operator() are inverses and agree with the layout; other digits have no effect.
TEST(Digits, InvertTheirLayout) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    auto [digits, whole] = random_digits(random);
    Layout layout = digits.layout();
    std::set<std::int64_t> covered;
    for (std::int64_t n = 0; n < digits.size(); ++n) {
      ASSERT_EQ(digits.offset(n), layout(n));
      ASSERT_EQ(digits(digits.offset(n)), n);
      covered.insert(digits.offset(n));
    }
    std::vector<std::int64_t> filled(static_cast<std::size_t>(whole));
    digits.fill(filled);
    Digits rest = Digits::whole(whole).without(digits);
    for (std::int64_t i = 0; i < whole; ++i) {
      ASSERT_EQ(filled[static_cast<std::size_t>(i)], digits(i));
      ASSERT_EQ(digits.covers(i), covered.contains(i));
      ASSERT_EQ(digits.offset(digits(i)) + rest.offset(rest(i)), i);  // the two parts add up
      ASSERT_EQ(digits.part_of(i), digits.offset(digits(i)));
    }
    ASSERT_EQ(rest.sorted(), rest);
    ASSERT_TRUE(digits.is_orthogonal());
  }
}

TEST(Digits, OrthogonalAsTheLayoutSays) {
  for (const Digits& digits :
       {digits_of({{3, 2}, {2, 3}}), digits_of({{2, 5}, {2, 2}}), digits_of({{4, 1}, {4, 1}}),
        digits_of({{2, 6}, {3, 1}}), digits_of({{2, 1}, {4, 2}}), Digits()})
    EXPECT_EQ(digits.is_orthogonal(), is_orthogonal(digits.layout()))
        << digits.layout().to_string();
}

TEST(Digits, WithoutASubset) {
  EXPECT_EQ(Digits::whole(24).without(digits_of({{2, 3}})), digits_of({{4, 6}, {3, 1}}));
  EXPECT_EQ(Digits::whole(24).without(digits_of({{3, 1}, {4, 6}})), digits_of({{2, 3}}));
  EXPECT_EQ(digits_of({{2, 12}, {3, 1}}).without(digits_of({{3, 1}})), digits_of({{2, 12}}));
  EXPECT_EQ(Digits::whole(8).without(Digits::whole(8)), Digits());
}

// By enumeration: do steps along one change digits of the other, from every position or from some?
TEST(Digits, EffectsOnOthers) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    const std::int64_t n = 72;
    const std::int64_t cuts[] = {1, 2, 3, 4, 6, 8, 9, 12, 18, 24, 36};
    auto draw = [&] {
      std::int64_t stride = cuts[random.between(0, 10)], size = 2;
      while (n % (stride * size) != 0) ++size;
      return digits_of({{size, stride}});
    };
    Digits a = draw(), b = draw();
    bool always = true, ever = false;
    Digits rest = Digits::whole(n).without(a);
    for (std::int64_t r = 0; r < rest.size(); ++r) {
      bool changes = false;
      for (std::int64_t k = 0; k < a.size(); ++k)
        changes = changes || b(rest.offset(r) + a.offset(k)) != b(rest.offset(r));
      always = always && changes;
      ever = ever || changes;
    }
    SCOPED_TRACE(a.layout().to_string() + " on " + b.layout().to_string());
    EXPECT_FALSE(a.effect_on(b) == Digits::Effect::kNone && ever);
    EXPECT_FALSE(a.effect_on(b) == Digits::Effect::kChanges && !always);
  }
  EXPECT_EQ(Digits::whole(6).effect_on(digits_of({{2, 9}})), Digits::Effect::kMayCarry);
}

TEST(Digits, WithinAFrame) {
  Digits frame = digits_of({{4, 1}, {2, 4}});  // the first mode varies slowest
  EXPECT_EQ(*digits_of({{2, 4}}).within(frame), digits_of({{2, 1}}));
  EXPECT_EQ(*digits_of({{2, 2}}).within(frame), digits_of({{2, 4}}));
  EXPECT_EQ(*Digits::whole(8).within(frame), digits_of({{2, 1}, {4, 2}}));
  EXPECT_EQ(*digits_of({{4, 2}}).within(frame), digits_of({{2, 1}, {2, 4}}));
  EXPECT_FALSE(digits_of({{2, 16}}).within(frame).ok());
  EXPECT_FALSE(digits_of({{4, 1}}).within(Digits::whole(21)).ok());
  Digits sixes = digits_of({{4, 1}, {6, 4}});
  EXPECT_FALSE(digits_of({{3, 8}}).within(sixes).value_or(Digits()) == digits_of({{3, 1}}));
  EXPECT_FALSE(digits_of({{8, 1}}).within(digits_of({{2, 1}, {3, 2}})).ok());
}

TEST(Digits, TooManyPositions) {
  Digits digits = Digits::whole(std::int64_t{1} << 40);
  EXPECT_TRUE(throws_error(
      [&] {
        digits.push_back({std::int64_t{1} << 40, 1});
      },
      ErrorCode::kInvalidArgument, {"64 bits"}));
}

}  // namespace
}  // namespace meshard
