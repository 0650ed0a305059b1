#include "meshard/ops/composite/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/capped_attention.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
using namespace internal;
namespace {

// The sizes of one call.
struct AttentionSizes {
  std::int64_t batch, queries, keys, heads, key_heads, size, value_size;
  bool grouped() const { return heads != key_heads; }
  std::int64_t group() const { return heads / key_heads; }
};

AttentionSizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, bool keys_by_heads,
                        SourceLocation where) {
  auto fail = [&](std::string_view what) {
    throw_invalid(where, "[dot_product_attention] ", what, ": query ", q.type(), ", key ", k.type(),
                  ", value ", v.type());
  };
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    fail("query, key and value must be [batch, time, heads, size], or by heads");
  std::int64_t keys = keys_by_heads ? 2 : 1, heads = keys_by_heads ? 1 : 2;
  AttentionSizes sizes{q.dim(0), q.dim(1), k.dim(keys), q.dim(2), k.dim(heads), q.dim(3), v.dim(3)};
  if (k.dim(0) != sizes.batch || v.dim(0) != sizes.batch) fail("batch sizes differ");
  if (v.dim(keys) != sizes.keys) fail("the numbers of keys and values differ");
  if (v.dim(heads) != sizes.key_heads) fail("keys and values have different numbers of heads");
  if (k.dim(3) != sizes.size) fail("queries and keys have different head sizes");
  if (sizes.key_heads == 0 || sizes.heads % sizes.key_heads != 0)
    fail("the number of query heads is not a multiple of the number of key heads");
  return sizes;
}

// x of shape [batch, heads, queries, keys], or one that broadcasts to it, in the layout of the
// scores: with grouped heads [batch, key heads, queries, group, keys].
Tensor like_scores(std::string_view what, const Tensor& x, const AttentionSizes& sizes,
                   SourceLocation where) {
  Dimensions full{sizes.batch, sizes.heads, sizes.queries, sizes.keys}, own(4, 1);
  for (std::int64_t d = 1; d <= x.rank(); ++d) {
    auto at = static_cast<std::size_t>(4 - d);
    if (d > 4 || (x.dim(-d) != 1 && x.dim(-d) != full[at]))
      throw_invalid(where, "[dot_product_attention] ", what, " ", x.type(),
                    " does not broadcast to [batch, heads, queries, keys] = ", Shape(full));
    own[at] = x.dim(-d);
  }
  Tensor four = reshape(x, own);
  if (!sizes.grouped()) return four;
  std::int64_t split_heads = own[1] == 1 ? 1 : sizes.key_heads;
  Tensor five = reshape(four, {own[0], split_heads, own[1] / split_heads, own[2], own[3]});
  return permute_dims(five, {0, 1, 3, 2, 4});
}

// The keys that each query may attend to by position, [1, 1, queries, keys]; undefined: all.
Tensor seen_by_position(const AttentionSizes& sizes, const AttentionOptions& options,
                        SourceLocation where) {
  for (const auto& window : {options.left_window, options.right_window})
    if (window && *window < 0)
      throw_invalid(where, "[dot_product_attention] a window cannot have ", *window, " positions");
  std::optional<std::int64_t> right = options.right_window;
  if (options.causal) right = 0;
  if (!right && !options.left_window) return {};
  Shape shape{1, 1, sizes.queries, sizes.keys};
  Tensor query = iota(DType::i32, shape, 2), key = iota(DType::i32, shape, 3);
  if (options.first_query.defined()) {
    if (options.first_query.rank() != 0 || !is_integer(options.first_query.dtype()))
      throw_invalid(where, "[dot_product_attention] first_query must be an integer of rank 0, not ",
                    options.first_query.type());
    query = add(query, astype(options.first_query, DType::i32));
  }
  Tensor seen;
  if (right) seen = less_equal(key, *right == 0 ? query : add(query, *right));
  if (!options.left_window) return seen;
  Tensor near = greater_equal(key, subtract(query, *options.left_window));
  return seen.defined() ? logical_and(seen, near) : near;
}

// The scaled products, limited if there is a cap, with bias and mask applied.
Tensor scores_of(const Tensor& q, const Tensor& k, const AttentionSizes& sizes,
                 const AttentionOptions& options, std::optional<double> soft_cap,
                 SourceLocation where) {
  // Result dimensions: batch dimensions, then the queries' own, then the keys.
  std::int64_t last = q.rank() - 1;
  DType dtype = computation_dtype(q.dtype());
  std::int64_t heads = options.keys_by_heads ? 1 : 2;
  Tensor scores = dot_general(q, k,
                              {.lhs_contracting = {last},
                               .rhs_contracting = {3},
                               .lhs_batch = {0, 2},
                               .rhs_batch = {0, heads}},
                              dtype);
  double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(sizes.size)));
  if (scale != 1) scores = multiply(scores, element_wise::literal(scale, scores));
  if (soft_cap) {
    Tensor cap = element_wise::literal(*soft_cap, scores);
    scores = multiply(tanh(divide(scores, cap)), cap);
  }
  if (options.bias.defined())
    scores =
        add(scores, astype(like_scores("bias", real_operand("dot_product_attention", options.bias),
                                       sizes, where),
                           dtype));
  Tensor seen = seen_by_position(sizes, options, where);
  if (options.mask.defined()) {
    if (options.mask.dtype() != DType::bool_)
      throw_invalid(where, "[dot_product_attention] the mask must be of bools, not ",
                    options.mask.type(), ": pass numbers to add as the bias");
    seen = seen.defined() ? logical_and(seen, options.mask) : options.mask;
  }
  if (!seen.defined()) return scores;
  // Far below any score but finite, so that a row without unmasked keys is a mean, not NaN.
  double lowest = -0.5 * std::numeric_limits<float>::max();
  return meshard::where(like_scores("mask", seen, sizes, where), scores,
                        element_wise::literal(lowest, scores));
}

// The rotation frequencies, computed in f64 and rounded once.
Tensor frequencies(std::int64_t rotated, double base, DType dtype) {
  std::vector<double> each;
  for (std::int64_t i = 0; i < rotated / 2; ++i)
    each.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotated)));
  return constant(HostArray::from_vector(std::move(each)).astype(dtype));
}

Tensor attended(In query, In key, In value, const AttentionOptions& options,
                std::optional<double> soft_cap) {
  SourceScope line(query.where);
  SourceLocation where = effective_source(query.where);
  constexpr std::string_view kName = "dot_product_attention";
  Tensor q = real_operand(kName, query), k = real_operand(kName, key);
  Tensor v = real_operand(kName, value);
  AttentionSizes sizes = sizes_of(q, k, v, options.keys_by_heads, where);
  DType result = float_result_dtype(q.dtype());
  if (sizes.grouped())
    q = reshape(q, {sizes.batch, sizes.queries, sizes.key_heads, sizes.group(), sizes.size});
  Tensor weights = astype(softmax(scores_of(q, k, sizes, options, soft_cap, where)),
                          float_result_dtype(v.dtype()));
  // [batch, key heads, queries, (group,) keys] by [batch, keys, key heads, value size] or, by
  // heads, [batch, key heads, keys, value size]
  std::int64_t keys = options.keys_by_heads ? 2 : 1;
  Tensor mixed = dot_general(weights, v,
                             {.lhs_contracting = {weights.rank() - 1},
                              .rhs_contracting = {keys},
                              .lhs_batch = {0, 1},
                              .rhs_batch = {0, 3 - keys}});
  Dimensions by_time = sizes.grouped() ? Dimensions{0, 2, 1, 3, 4} : Dimensions{0, 2, 1, 3};
  Tensor in_order = reshape(permute_dims(mixed, std::move(by_time)),
                            {sizes.batch, sizes.queries, sizes.heads, sizes.value_size});
  return astype(in_order, result);
}

}  // namespace

Tensor dot_product_attention(In query, In key, In value, const AttentionOptions& options) {
  return attended(query, key, value, options, std::nullopt);
}

Tensor capped_attention(In query, In key, In value, const AttentionOptions& options,
                        double soft_cap) {
  if (!(soft_cap > 0))
    throw_invalid(effective_source(query.where), "[capped_attention] soft_cap = ", soft_cap,
                  " must be positive");
  return attended(query, key, value, options, soft_cap);
}

Tensor rotary_embedding(In argument, In positions, RotaryForm form, double base,
                        std::optional<std::int64_t> rotated) {
  SourceScope line(argument.where);
  SourceLocation where = effective_source(argument.where);
  Tensor operand = real_operand("rotary_embedding", argument), x = for_computation(operand);
  Tensor at = astype(real_operand("rotary_embedding", positions), x.dtype());
  if (x.rank() < 3)
    throw_invalid(where, "[rotary_embedding] takes [..., time, heads, size], not ", operand.type());
  std::int64_t size = x.dim(-1), turned = rotated.value_or(size);
  if (turned % 2 != 0 || turned < 0 || turned > size)
    throw_invalid(where, "[rotary_embedding] ", turned, " elements of a head of size ", size,
                  " cannot be rotated in pairs: ", operand.type());
  for (std::int64_t d = 1; d <= at.rank(); ++d)
    if (d + 2 > x.rank() || (at.dim(-d) != 1 && at.dim(-d) != x.dim(-d - 2)))
      throw_invalid(where, "[rotary_embedding] positions ", at.type(),
                    " do not broadcast to the dimensions before the heads of ", operand.type());
  Dimensions angle_sizes = at.shape().sizes();
  angle_sizes.push_back(1);
  angle_sizes.push_back(1);
  Tensor angle = multiply(reshape(at, angle_sizes), frequencies(turned, base, x.dtype()));
  Tensor cosine = cos(angle), sine = sin(angle);
  std::vector<Tensor> parts = split_sizes(x, {turned, size - turned}, -1), pair;
  Dimensions half = parts[0].shape().sizes();
  half.back() = turned / 2;
  if (form == RotaryForm::kHalves) {
    pair = split(parts[0], 2, -1);
  } else {
    Dimensions apart = half;
    apart.push_back(2);
    for (const Tensor& each : split(reshape(parts[0], apart), 2, -1))
      pair.push_back(reshape(each, half));
  }
  Tensor first = subtract(multiply(pair[0], cosine), multiply(pair[1], sine));
  Tensor second = add(multiply(pair[1], cosine), multiply(pair[0], sine));
  Tensor joined = form == RotaryForm::kHalves
                      ? concat({first, second}, -1)
                      : reshape(stack({first, second}, -1), parts[0].shape());
  if (turned != size) joined = concat({joined, parts[1]}, -1);
  return astype(joined, float_result_dtype(operand.dtype()));
}

}  // namespace meshard
