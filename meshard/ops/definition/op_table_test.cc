#include "meshard/ops/definition/op_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

#include "tests/support/op_samples/op_samples.h"

namespace meshard {
namespace {

TEST(OpTable, IsAlphabeticalAndComplete) {
  std::string_view before;
  for (const OpDef* op : all_ops()) {
    EXPECT_LT(before, op->name);
    before = op->name;
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_FALSE(op->example.empty()) << op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->sharding_rule, nullptr) << op->name;
    EXPECT_NE(op->emit, nullptr) << op->name;
    SampleSource source(1);
    EXPECT_FALSE(samples_of(*op, source).empty()) << op->name;
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

// docs/concepts/autodiff.md gives the reason for each. All other ops have a derivative if their
// operands are floats or complex numbers.
TEST(OpTable, TheseHaveNoDerivative) {
  const std::set<std::string_view> without{
      // Operands or results are bools or integers, so derivatives end there.
      "all", "any", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
      "bitwise_right_shift", "bitwise_xor", "count_leading_zeros", "equal", "greater",
      "greater_equal", "isfinite", "less", "less_equal", "logical_and", "logical_not", "logical_or",
      "logical_xor", "lu_pivots_to_permutation", "not_equal", "popcnt", "pure_callback",
      "rng_bit_generator", "schur", "shift_right_logical", "truncated_divide",
      // As in JAX: jax.numpy.nextafter and jax.ffi.ffi_call have none either.
      "custom_call", "nextafter"};
  std::set<std::string_view> found;
  for (const OpDef* op : all_ops())
    if (op->vjp == kNotDifferentiable) found.insert(op->name);
  EXPECT_EQ(found, without);
}

std::set<std::string_view> ops_with(bool OpTraits::*trait) {
  std::set<std::string_view> found;
  for (const OpDef* op : all_ops())
    if (op->traits.*trait) found.insert(op->name);
  return found;
}

// Code outside ops/ relies on these instead of names.
TEST(OpTable, Traits) {
  using Names = std::set<std::string_view>;
  EXPECT_EQ(ops_with(&OpTraits::repeats_elements), (Names{"broadcast_in_dim"}));
  EXPECT_EQ(ops_with(&OpTraits::is_product), (Names{"convolution", "dot_general"}));
  EXPECT_EQ(ops_with(&OpTraits::stops_gradient), (Names{"stop_gradient"}));
  EXPECT_EQ(ops_with(&OpTraits::is_collective), (Names{"all_gather", "all_reduce", "all_to_all",
                                                       "collective_permute", "reduce_scatter"}));
  EXPECT_EQ(ops_with(&OpTraits::marks_sharding), (Names{"sharding_constraint"}));
}

// All other ops with a domain are arithmetic; all others are never recomputed without a policy.
TEST(OpTable, Recomputation) {
  std::map<Recomputation, std::set<std::string_view>> found;
  for (const OpDef* op : all_ops()) {
    Recomputation recomputation = op->traits.recomputation;
    bool usual = recomputation == (op->domain == DTypeDomain::kNone ? Recomputation::kNever
                                                                    : Recomputation::kArithmetic);
    if (!usual) found[recomputation].insert(op->name);
  }
  using Names = std::set<std::string_view>;
  EXPECT_EQ(found[Recomputation::kFree],
            (Names{"broadcast_in_dim", "checkpoint_name", "constant", "full_to_shard", "iota",
                   "reshape", "sharding_constraint", "stop_gradient", "vary"}));
  // They move elements, or are element-wise with dtypes of their own.
  EXPECT_EQ(found[Recomputation::kArithmetic],
            (Names{"astype", "complex", "concat", "flip", "imag", "pad", "permute_dims", "real",
                   "slice", "where"}));
  EXPECT_EQ(found[Recomputation::kFunction],
            (Names{"acos",    "acosh", "asin",     "asinh", "atan",         "atan2",
                   "atanh",   "cbrt",  "cos",      "cosh",  "divide",       "erf",
                   "erf_inv", "erfc",  "exp",      "expm1", "floor_divide", "fmod",
                   "log",     "log1p", "logistic", "pow",   "rsqrt",        "remainder",
                   "sin",     "sinh",  "sqrt",     "tan",   "tanh",         "truncated_divide"}));
  EXPECT_EQ(found[Recomputation::kSeries], (Names{"digamma", "lgamma", "polygamma", "zeta"}));
  EXPECT_EQ(found[Recomputation::kNever], Names{});
}

}  // namespace
}  // namespace meshard
