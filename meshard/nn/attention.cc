#include "meshard/nn/attention.h"

#include "meshard/base/error.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/record.h"
#include "meshard/nn/linear.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/capped_attention.h"

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

// Normalized over the elements of each head.
Tensor normalized_heads(const Tensor& heads, const std::optional<Tensor>& scale, QkNorm form) {
  constexpr double kEpsilon = 1e-6;
  if (!scale) return heads;
  if (form == QkNorm::kRms) return meshard::rms_norm(heads, *scale, kEpsilon);
  return meshard::layer_norm(heads, *scale, zeros({}, scale->dtype()), kEpsilon);
}

// Queries of x, at these positions, and keys and values of `memory`.
Heads heads_of(const Attention& params, const Tensor& x, const Tensor& positions,
               const Tensor& memory, const Tensor& memory_positions, const Attending& how) {
  Heads heads{projected(x, params.query, params.query_bias),
              projected(memory, params.key, params.key_bias),
              projected(memory, params.value, params.value_bias)};
  heads.query = normalized_heads(heads.query, params.query_scale, how.qk_norm);
  heads.key = normalized_heads(heads.key, params.key_scale, how.qk_norm);
  if (how.rotary) {
    heads.query = rotated(*how.rotary, heads.query, positions);
    heads.key = rotated(*how.rotary, heads.key, memory_positions);
  }
  return heads;
}

AttentionOptions options_of(const Attending& how, bool causal) {
  return {.scale = how.scale,
          .causal = causal,
          .left_window = how.left_window,
          .right_window = how.right_window,
          .mask = how.mask,
          .bias = how.bias};
}

Tensor attended(const Heads& heads, const AttentionOptions& options, const Attending& how) {
  if (how.soft_cap)
    return capped_attention(heads.query, heads.key, heads.value, options, *how.soft_cap);
  return dot_product_attention(heads.query, heads.key, heads.value, options);
}

void check_no_read(const Attending& how, const Tensor& x) {
  if (how.read != 0)
    throw_invalid(x.where(), "[nn.attention] read is ", how.read,
                  ", but there is no cache whose positions are read");
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
  std::int64_t memory = options.memory_width ? options.memory_width : width;
  if (memory < 1)
    throw_invalid(SourceLocation{}, "[nn.make_attention] a memory_width of ", memory,
                  " is not positive");
  auto weight = [&](std::int64_t in, std::int64_t count, const char* name) {
    return make({in, count, size}, P("embed", name, "head"), options.weight, {in, count * size});
  };
  Attention params;
  params.query = weight(width, heads, "heads");
  params.key = weight(memory, key_heads, "key_heads");
  params.value = weight(memory, key_heads, "key_heads");
  params.out =
      make({heads, size, width}, P("heads", "head", "embed"), options.out, {heads * size, width});
  if (options.bias) {
    params.query_bias = make({heads, size}, P("heads", "head"), init::zeros());
    params.key_bias = make({key_heads, size}, P("key_heads", "head"), init::zeros());
    params.value_bias = make({key_heads, size}, P("key_heads", "head"), init::zeros());
    params.out_bias = make({width}, P("embed"), init::zeros());
  }
  if (options.qk_norm) {
    params.query_scale = make({size}, P("head"), init::ones());
    params.key_scale = make({size}, P("head"), init::ones());
  }
  return params;
}

Tensor attention(const Attention& params, const Tensor& x, const Attending& how,
                 SourceLocation where) {
  CallScope line(where, "in nn::attention");
  check_no_read(how, x);
  Tensor positions = arange(x.dim(1));
  Heads heads = heads_of(params, x, positions, x, positions, how);
  return joined_heads(params, attended(heads, options_of(how, how.causal.value_or(true)), how));
}

Tensor cross_attention(const Attention& params, const Tensor& x, const Tensor& memory,
                       const Attending& how, SourceLocation where) {
  CallScope line(where, "in nn::cross_attention");
  check_no_read(how, x);
  if (x.rank() != 3 || memory.rank() != 3 || memory.dim(2) != params.key.dim(0))
    throw_invalid(memory.where(), "[nn.cross_attention] takes x [batch, time, ",
                  params.query.dim(0), "] and a memory [batch, keys, ", params.key.dim(0),
                  "], not ", x.type(), " and ", memory.type());
  Heads heads = heads_of(params, x, arange(x.dim(1)), memory, arange(memory.dim(1)), how);
  return joined_heads(params, attended(heads, options_of(how, how.causal.value_or(false)), how));
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
  Heads heads = heads_of(params, x, positions, x, positions, how);
  KeyValueCache next{written(cache.key, heads.key, positions),
                     written(cache.value, heads.value, positions)};
  auto read_part = [&](const Tensor& all) {
    Tensor part =
        read == length ? all : slice(all, {0, 0, 0, 0}, {batch, all.dim(1), read, all.dim(3)});
    return astype(part, x.dtype());
  };
  Tensor places = expand_dims(iota(start.dtype(), {batch, read}, 1), 1);  // [batch, 1, read]
  Tensor last = how.causal.value_or(true) ? positions : column + (time - 1);
  Tensor seen = places <= expand_dims(last, 2);  // [batch, time, read]
  // Windows are around each row's own positions, which the op does not know.
  if (how.right_window)
    seen = logical_and(seen, places <= expand_dims(positions, 2) + *how.right_window);
  if (how.left_window)
    seen = logical_and(seen, places >= expand_dims(positions, 2) - *how.left_window);
  seen = expand_dims(seen, 1);
  AttentionOptions options = options_of(how, false);
  options.left_window = options.right_window = std::nullopt;
  options.mask = how.mask.defined() ? logical_and(seen, how.mask) : seen;
  options.keys_by_heads = true;
  heads.key = read_part(next.key);
  heads.value = read_part(next.value);
  return {joined_heads(params, attended(heads, options, how)), next};
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
