#include "meshard/nn/attention.h"

#include "meshard/base/error.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/record.h"
#include "meshard/nn/linear.h"
#include "meshard/ops/all.h"

namespace meshard::nn {
namespace {

Tensor projected(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  Tensor y = einsum("btd,dhk->bthk", {x, match_dtype(weight, x)});
  return bias ? y + match_dtype(*bias, x) : y;
}

Tensor joined_heads(const Attention& params, const Tensor& heads) {
  Tensor y = einsum("bthk,hkd->btd", {heads, match_dtype(params.out, heads)});
  return params.out_bias ? y + match_dtype(*params.out_bias, heads) : y;
}

struct Heads {
  Tensor query, key, value;
};

Heads heads_of(const Attention& params, const Tensor& x, const Tensor& positions,
               const Attending& how) {
  Heads heads{projected(x, params.query, params.query_bias),
              projected(x, params.key, params.key_bias),
              projected(x, params.value, params.value_bias)};
  if (how.rotary) {
    heads.query = rotated(*how.rotary, heads.query, positions);
    heads.key = rotated(*how.rotary, heads.key, positions);
  }
  return heads;
}

// The cache with row b of `fresh` written at positions[b]. If the cache is donated, only these
// positions are written.
Tensor written(const Tensor& cache, const Tensor& fresh, const Tensor& positions) {
  return scatter_set(cache, expand_dims(positions, 2), astype(fresh, cache.dtype()),
                     {.update_window_dims = {2, 3},
                      .inserted_window_dims = {2},
                      .input_batching_dims = {0},
                      .scatter_indices_batching_dims = {0},
                      .scatter_dims_to_operand_dims = {2},
                      .index_vector_dim = 2},
                     /*indices_are_sorted=*/true, /*unique_indices=*/true);
}

}  // namespace

Attention make_attention(Maker& make, std::int64_t width, const AttentionSizes& options,
                         SourceLocation where) {
  CallScope line(where, "in nn::make_attention");
  std::int64_t heads = options.heads, key_heads = options.key_heads ? options.key_heads : heads;
  if (heads < 1 || (options.size == 0 && width % heads != 0))
    throw_invalid(SourceLocation{}, "[nn.make_attention] a width of ", width,
                  " cannot be divided into ", heads, " equal heads: set the size of a head");
  if (key_heads < 1 || heads % key_heads != 0)
    throw_invalid(SourceLocation{}, "[nn.make_attention] ", heads, " heads cannot share ",
                  key_heads, " key heads evenly");
  std::int64_t size = options.size ? options.size : width / heads;
  auto weight = [&](std::int64_t count, const char* name) {
    return make({width, count, size}, P("embed", name, "head"), options.weight,
                {width, count * size});
  };
  Attention params;
  params.query = weight(heads, "heads");
  params.key = weight(key_heads, "key_heads");
  params.value = weight(key_heads, "key_heads");
  params.out =
      make({heads, size, width}, P("heads", "head", "embed"), options.out, {heads * size, width});
  if (!options.bias) return params;
  params.query_bias = make({heads, size}, P("heads", "head"), init::zeros());
  params.key_bias = make({key_heads, size}, P("key_heads", "head"), init::zeros());
  params.value_bias = make({key_heads, size}, P("key_heads", "head"), init::zeros());
  params.out_bias = make({width}, P("embed"), init::zeros());
  return params;
}

Tensor attention(const Attention& params, const Tensor& x, const Attending& how,
                 SourceLocation where) {
  CallScope line(where, "in nn::attention");
  std::int64_t time = x.dim(1);
  Heads heads = heads_of(params, x, arange(time), how);
  return joined_heads(
      params, dot_product_attention(heads.query, heads.key, heads.value, {.causal = how.causal}));
}

KeyValueCache make_cache(const AxisRules& rules, const Attention& params, std::int64_t batch,
                         std::int64_t length, SourceLocation where) {
  CallScope line(where, "in nn::make_cache");
  auto empty = [&] {
    Tensor zero = zeros({batch, params.key.dim(1), length, params.key.dim(2)}, params.key.dtype());
    return rules.mark(zero, P("batch", "key_heads", none, "head"));
  };
  KeyValueCache cache{empty(), empty()};
  if (!only_recording()) compute({cache.key, cache.value});
  return cache;
}

std::pair<Tensor, KeyValueCache> attention(const Attention& params, const Tensor& x,
                                           const KeyValueCache& cache, const Tensor& start,
                                           const Attending& how, SourceLocation where) {
  CallScope line(where, "in nn::attention");
  std::int64_t batch = x.dim(0), time = x.dim(1), length = cache.key.dim(2);
  if (start.rank() != 1 || start.dim(0) != batch || !is_integer(start.dtype()))
    throw_invalid(start.where(), "[nn.attention] start is ", start.type(),
                  ", but must hold one integer for each of the ", batch, " rows of x");
  if (how.read < 0 || how.read > length)
    throw_invalid(x.where(), "[nn.attention] read is ", how.read, ", but the cache has ", length,
                  " positions");
  std::int64_t read = how.read == 0 ? length : how.read;
  Tensor column = reshape(start, {batch, 1});
  Tensor positions = column + reshape(arange(time), {1, time});  // [batch, time]
  Heads heads = heads_of(params, x, positions, how);
  KeyValueCache next{written(cache.key, heads.key, positions),
                     written(cache.value, heads.value, positions)};
  auto read_part = [&](const Tensor& all) {
    Tensor part =
        read == length ? all : slice(all, {0, 0, 0, 0}, {batch, all.dim(1), read, all.dim(3)});
    return astype(part, x.dtype());
  };
  Tensor places = iota(start.dtype(), {batch, read}, 1);
  Tensor last = how.causal ? positions : column + (time - 1);
  Tensor seen = expand_dims(places, 1) <= expand_dims(last, 2);  // [batch, time, read]
  Tensor result = dot_product_attention(heads.query, read_part(next.key), read_part(next.value),
                                        {.mask = expand_dims(seen, 1), .keys_by_heads = true});
  return {joined_heads(params, result), next};
}

Tensor rotated(const Rotary& rotary, const Tensor& x, const Tensor& positions,
               SourceLocation where) {
  CallScope line(where, "in nn::rotated");
  if (x.rank() != 4 || x.dim(3) % 2 != 0 || positions.rank() < 1 || positions.rank() > 2 ||
      positions.dim(-1) != x.dim(1))
    throw_invalid(
        x.where(),
        "[nn.rotated] takes x [batch, time, heads, size] with an even size, and positions ",
        "[time] or [batch, time], not ", x.type(), " and ", positions.type());
  return rotary_embedding(x, positions, RotaryForm::kHalves, rotary.theta);
}

}  // namespace meshard::nn
