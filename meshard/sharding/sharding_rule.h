// Sharding rules: how the dimensions of an op's operands and results correspond.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"
#include "meshard/layout/int_tuple.h"

namespace meshard {

/// What the op does if a factor is sharded.
enum class FactorKind {
  kPassThrough,      ///< the op runs unchanged on each shard
  kReduction,        ///< the results of the shards must be combined (all-reduce)
  kNeedReplication,  ///< the op needs the whole factor: it is gathered first
  kPermutation,      ///< shards exchange parts (collective-permute)
};

/// A value: one factor of a sharding rule.
struct Factor {
  std::int64_t size = 1;
  FactorKind kind = FactorKind::kPassThrough;
  friend bool operator==(const Factor&, const Factor&) = default;
};

/// The factors that make up one dimension, by index, the most significant first.
using DimensionFactors = InlineVector<int, 2>;
/// The DimensionFactors of each dimension of one operand or result.
using TensorFactors = std::vector<DimensionFactors>;

/// A value: an op's sharding rule, similar to einsum (openxla/shardy, `#sdy.op_sharding_rule`). A
/// dimension consists of one or more factors. A factor that occurs in several tensors is sharded in
/// the same way in all of them.
///
/// Matrix product: `([i, j], [j, k])->([i, k]) {i=8, j=4, k=16} reduction={j}`. Reshape of 32 to
/// 8x4:
/// `([ij])->([i, j]) {i=8, j=4}`. Factors are named i..z, then `z_1`, `z_2`, ...
class ShardingRule {
 public:
  ShardingRule() = default;
  /// @error a factor index out of range or twice in one tensor; a dimension without factors; a
  /// factor in no tensor; a negative size; a reduction factor in a result.
  ShardingRule(std::vector<Factor> factors, std::vector<TensorFactors> operands,
               std::vector<TensorFactors> results);

  const std::vector<Factor>& factors() const { return factors_; }
  const std::vector<TensorFactors>& operands() const { return operands_; }
  const std::vector<TensorFactors>& results() const { return results_; }

  /// Checks the rule against tensor sizes: same number of tensors and dimensions, and the product
  /// of the factors is the size of each dimension. @error the first that differs, with both values.
  Result<void> validate(std::span<const IntVector> operand_dims,
                        std::span<const IntVector> result_dims) const;

  std::string to_string() const;
  static Result<ShardingRule> parse(std::string_view text);
  friend bool operator==(const ShardingRule&, const ShardingRule&) = default;

 private:
  std::vector<Factor> factors_;
  std::vector<TensorFactors> operands_;
  std::vector<TensorFactors> results_;
};

/// The name of factor `index`: i, j, ..., z, z_1, z_2, ...
std::string factor_name(int index);

/// Makes a ShardingRule step by step:
///
/// ```
/// ShardingRuleBuilder b;
/// int i = b.factor(8), j = b.factor(4, FactorKind::kReduction), k = b.factor(16);
/// ShardingRule rule = b.operand({{i}, {j}}).operand({{j}, {k}}).result({{i}, {k}}).build();
/// ```
class ShardingRuleBuilder {
 public:
  /// A new factor; returns its index.
  int factor(std::int64_t size, FactorKind kind = FactorKind::kPassThrough) {
    factors_.push_back({size, kind});
    return static_cast<int>(factors_.size()) - 1;
  }
  ShardingRuleBuilder& operand(TensorFactors factors) {
    operands_.push_back(std::move(factors));
    return *this;
  }
  ShardingRuleBuilder& result(TensorFactors factors) {
    results_.push_back(std::move(factors));
    return *this;
  }
  /// @error as the constructor of ShardingRule
  ShardingRule build() const { return ShardingRule(factors_, operands_, results_); }

 private:
  std::vector<Factor> factors_;
  std::vector<TensorFactors> operands_;
  std::vector<TensorFactors> results_;
};

}  // namespace meshard
