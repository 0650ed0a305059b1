#include "meshard/sharding/sharding_rule.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

ShardingRule matmul() {
  ShardingRuleBuilder b;
  int i = b.factor(8), j = b.factor(4, FactorKind::kReduction), k = b.factor(16);
  return b.operand({{i}, {j}}).operand({{j}, {k}}).result({{i}, {k}}).build();
}

TEST(ShardingRule, PrintsInShardysNotation) {
  EXPECT_EQ(matmul().to_string(), "([i, j], [j, k])->([i, k]) {i=8, j=4, k=16} reduction={j}");
}

TEST(ShardingRule, ParsesWhatItPrints) {
  for (const char* text :
       {"([i, j], [j, k])->([i, k]) {i=8, j=4, k=16} reduction={j}", "([ij])->([i, j]) {i=8, j=4}",
        "([])->([]) {}", "([i], [])->([i]) {i=3}",
        "([i, j, k])->([i, j, k]) {i=2, j=3, k=4} need_replication={j} permutation={k}",
        "([i, j])->([], [j]) {i=2, j=2} reduction={i}"})
    EXPECT_EQ(ShardingRule::parse(text).value().to_string(), text);
  // Sizes may be in any order.
  EXPECT_EQ(ShardingRule::parse("([i, k], [k, j])->([i, j]) {i=8, k=4, j=16} reduction={k}")
                .value()
                .to_string(),
            "([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}");
}

TEST(ShardingRule, FactorsBeyondTheAlphabet) {
  EXPECT_EQ(factor_name(0), "i");
  EXPECT_EQ(factor_name(17), "z");
  EXPECT_EQ(factor_name(18), "z_1");
  ShardingRuleBuilder b;
  DimensionFactors all;
  for (int f = 0; f < 21; ++f) all.push_back(b.factor(2));
  ShardingRule rule = b.operand({all}).result({all}).build();
  EXPECT_NE(rule.to_string().find("yzz_1z_2z_3]"), std::string::npos);
  EXPECT_EQ(ShardingRule::parse(rule.to_string()).value(), rule);
}

TEST(ShardingRule, ParseRefusals) {
  for (const char* text :
       {"", "([i])->([i])", "([i])->([j]) {i=2}", "([i])->([i]) {i=2, i=2}", "([a])->([a]) {a=2}",
        "([i])->([i]) {i=2} reduction={i}", "([i])->([i]) {i=2} reduction={j}",
        "([i, i])->([i]) {i=2}", "([i])->([i]) {i=2, j=3}", "([i])->([i]) {i=-1}",
        "([i])->([i]) {i=2} x"})
    EXPECT_FALSE(ShardingRule::parse(text).ok()) << text;
}

TEST(ShardingRule, ConstructionErrors) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [] {
        ShardingRule({{2}}, {{{0}, {0}}}, {});
      },
      invalid, {"factor i", "twice", "operand 0"}));
  EXPECT_TRUE(throws_error([] { ShardingRule({{2}}, {{{0}}}, {{{1}}}); }, invalid,
                           {"factor 1, but the number of factors is 1", "result 0"}));
  EXPECT_TRUE(throws_error(
      [] {
        ShardingRule({{2, FactorKind::kReduction}}, {}, {{{0}}});
      },
      invalid, {"reduction factor i", "result 0"}));
  EXPECT_TRUE(throws_error([] { ShardingRule({{2}}, {{}}, {}); }, invalid,
                           {"does not appear in any operand"}));
  EXPECT_TRUE(throws_error(
      [] {
        ShardingRule({{2}}, {{{0}, {}}}, {});
      },
      invalid, {"dimension 1", "no factor"}));
}

TEST(ShardingRule, ValidateComparesSizes) {
  std::vector<IntVector> operands = {{8, 4}, {4, 16}}, results = {{8, 16}};
  EXPECT_TRUE(matmul().validate(operands, results).ok());
  operands[1][0] = 5;
  Result<void> wrong = matmul().validate(operands, results);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find(
                "dimension 0 of operand 1 has size 4 by its factors, but 5 in the op"),
            std::string::npos);
  EXPECT_FALSE(matmul().validate({}, results).ok());
  results[0].push_back(1);
  operands[1][0] = 4;
  EXPECT_FALSE(matmul().validate(operands, results).ok());
}

}  // namespace
}  // namespace meshard
