#include "meshard/ops/reshape.h"

#include <numeric>

#include "meshard/ops/definition/define.h"
#include "meshard/ops/reduction.h"

namespace meshard {
namespace {

// Calls `visit(i, i_end, o, o_end)` for the shortest runs of dimensions with equal products. Both
// shapes must have the same number of elements, not 0.
template <class Visit>
void for_each_group(const Shape& from, const Shape& to, Visit visit) {
  int i = 0, o = 0;
  while (i < from.rank() || o < to.rank()) {
    int first_in = i, first_out = o;
    std::int64_t in = i < from.rank() ? from[i++] : 1, out = o < to.rank() ? to[o++] : 1;
    while (in != out) {
      if (in < out)
        in *= from[i++];
      else
        out *= to[o++];
    }
    visit(first_in, i, first_out, o);
  }
}

Dimensions larger_than_one(const Shape& shape) {
  Dimensions larger;
  for (std::int64_t size : shape)
    if (size > 1) larger.push_back(size);
  return larger;
}

// True if one dimension is split into several, or neighbors are merged into one, and the others are
// unchanged; dimensions of size 1 may be added or removed.
bool splits_or_merges_one(const Shape& from, const Shape& to) {
  if (larger_than_one(from) == larger_than_one(to)) return true;
  int shorter = std::min(from.rank(), to.rank()), before = 0, after = 0;
  while (before < shorter && from[before] == to[before]) ++before;
  while (after < shorter - before && from[from.rank() - 1 - after] == to[to.rank() - 1 - after])
    ++after;
  return from.rank() - before - after == 1 || to.rank() - before - after == 1;
}

// Explicit axes: any other reshape of a split value needs a sharding from the program. JAX 0.10 has
// the same limit.
std::string reshape_conflict(const OpCall& call, std::span<const Sharding* const> operands) {
  bool easy = operands[0]->num_tiles() == 1 ||
              splits_or_merges_one(call.operand(0).shape, call.result().shape);
  return easy ? std::string()
              : cat("from ", call.operand(0).shape, " to ", call.result().shape,
                    " more than one dimension is split or merged");
}

// Builds the rule of a reshape. Dimensions are grouped by equal products. Within a group both sides
// are divided into common factors, from the most significant on, so that a split of the major part
// of a dimension passes through. Factors without a counterpart must be whole.
class ReshapeRule {
 public:
  ReshapeRule(const Shape& from, const Shape& to)
      : from_(from),
        to_(to),
        from_factors_(static_cast<std::size_t>(from.rank())),
        to_factors_(static_cast<std::size_t>(to.rank())) {}

  ShardingRule build() && {
    if (from_.size() == 0) {
      keep_alone(from_, from_factors_, 0, from_.rank(), 0);
      keep_alone(to_, to_factors_, 0, to_.rank(), 0);
    } else {
      for_each_group(from_, to_,
                     [&](int i, int i_end, int o, int o_end) { match(i, i_end, o, o_end); });
    }
    return builder_.operand(std::move(from_factors_)).result(std::move(to_factors_)).build();
  }

 private:
  // Divides the dimensions [i, i_end) and [o, o_end), of equal product, into common factors.
  void match(int i, int i_end, int o, int o_end) {
    std::int64_t in = i < i_end ? from_[i] : 1, out = o < o_end ? to_[o] : 1;
    while (i < i_end || o < o_end) {
      if (i < i_end && in == 1) {
        next(from_, from_factors_, i, i_end, in);
      } else if (o < o_end && out == 1) {
        next(to_, to_factors_, o, o_end, out);
      } else {
        std::int64_t common = std::gcd(in, out);
        if (common == 1) {
          keep_alone(from_, from_factors_, i, i_end, in);
          keep_alone(to_, to_factors_, o, o_end, out);
          return;
        }
        int factor = builder_.factor(common);
        from_factors_[static_cast<std::size_t>(i)].push_back(factor);
        to_factors_[static_cast<std::size_t>(o)].push_back(factor);
        in /= common;
        out /= common;
      }
    }
  }

  // Advances to the next dimension; one of size 1 gets its own factor.
  void next(const Shape& shape, std::vector<DimensionFactors>& factors, int& d, int end,
            std::int64_t& left) {
    DimensionFactors& here = factors[static_cast<std::size_t>(d)];
    if (here.empty()) here.push_back(builder_.factor(1));
    ++d;
    left = d < end ? shape[d] : 1;
  }

  // The remainder of dimension d (`left`) and the dimensions up to `end` have no counterpart.
  void keep_alone(const Shape& shape, std::vector<DimensionFactors>& factors, int d, int end,
                  std::int64_t left) {
    bool empty = shape.size() == 0;
    for (int k = d; k < end; ++k) {
      std::int64_t size = k == d && !empty ? left : shape[k];
      factors[static_cast<std::size_t>(k)].push_back(
          builder_.factor(size, FactorKind::kNeedReplication));
    }
  }

  const Shape& from_;
  const Shape& to_;
  ShardingRuleBuilder builder_;
  std::vector<DimensionFactors> from_factors_, to_factors_;
};

Shape complete(const NewShape& wanted, const Shape& from, SourceLocation where) {
  Dimensions sizes = wanted.sizes();
  std::int64_t known = 1;
  std::int64_t* free = nullptr;
  for (std::int64_t& size : sizes) {
    if (size == -1 && free)
      throw_invalid(where, "[reshape] more than one size is -1: [", join(wanted.sizes(), ", "),
                    "]");
    if (size == -1)
      free = &size;
    else if (size < 0)
      throw_invalid(where, "[reshape] size ", size, " in [", join(wanted.sizes(), ", "),
                    "]: sizes must be 0 or more, except for one -1");
    else
      known *= size;
  }
  if (free) {
    if (known == 0 || from.size() % known != 0)
      throw_invalid(where, "[reshape] cannot infer the size -1: ", from, " has ", from.size(),
                    " elements, but the known sizes of [", join(wanted.sizes(), ", "),
                    "] multiply to ", known);
    *free = from.size() / known;
  }
  return Shape(std::move(sizes));
}

void batch_reshape(const BatchCall& call, std::span<Tensor> results) {
  ReshapeAttributes attributes{batched_shape(call.size, call.as<ReshapeAttributes>().shape)};
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef reshape_op = {
    .name = "reshape",
    .operands = "x",
    .example = "reshape(x, {3, 2})",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const TensorType& from = call.operand(0);
          const Shape& to = call.as<ReshapeAttributes>().shape;
          if (from.size() != to.size())
            call.fail("the number of elements differs: ", from, " has ", from.size(), ", ", to,
                      " has ", to.size());
          results.push_back({from.dtype, to});
        },
    .sharding_rule =
        [](const OpCall& call) {
          return ReshapeRule(call.operand(0).shape, call.result().shape).build();
        },
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .read = {.mnemonic = "stablehlo.reshape",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(ReshapeAttributes{text.results[0].shape});
                 }},
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = reshape(call.cotangents[0], call.operands[0].shape());
        },
    .batch = batch_reshape,
    .sharding_conflict = reshape_conflict,
    .parse_attributes = parse_attributes<ReshapeAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor reshape(In x, NewShape shape) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor(reshape_op, x);
  const Shape& from = operand.shape();
  Shape to = complete(shape, from, where);
  if (to == from) return operand;
  return record(reshape_op, make_attributes(ReshapeAttributes{std::move(to)}), {&operand}, where);
}

namespace {

void infer_broadcast_in_dim(const OpCall& call, ResultTypes& results) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  const TensorType& operand = call.operand(0);
  if (static_cast<int>(dimensions.size()) != operand.rank())
    call.fail(dimensions.size(), " dimensions are named for an operand of rank ", operand.rank(),
              ", ", operand);
  for (int i = 0; i < operand.rank(); ++i) {
    std::int64_t to = dimensions[static_cast<std::size_t>(i)];
    if (to < 0 || to >= shape.rank())
      call.fail("dimension ", i, " is mapped to dimension ", to, " of ", shape, ", which has rank ",
                shape.rank());
    if (i > 0 && to <= dimensions[static_cast<std::size_t>(i) - 1])
      call.fail("dimensions [", join(dimensions, ", "), "] are not ascending");
    if (operand.shape[i] != 1 && operand.shape[i] != shape[to])
      call.fail("sizes differ: operand ", operand, " dimension ", i, " = ", operand.shape[i],
                ", result ", shape, " dimension ", to, " = ", shape[to]);
  }
  results.push_back({operand.dtype, shape});
}

ShardingRule broadcast_in_dim_rule(const OpCall& call) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  const Shape& from = call.operand(0).shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in, out;
  for (std::int64_t size : shape) out.push_back(builder.factor(size));
  for (int i = 0; i < from.rank(); ++i) {
    std::int64_t to = dimensions[static_cast<std::size_t>(i)];
    in.push_back(from[i] == shape[to] ? out[static_cast<std::size_t>(to)] : builder.factor(1));
  }
  return builder.operand(one_factor_each(in)).result(one_factor_each(out)).build();
}

void broadcast_in_dim_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  const Shape& from = call.operands[0].shape();
  Dimensions repeated;
  std::size_t i = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    bool named = i < dimensions.size() && dimensions[i] == d;
    if (!named || from[static_cast<std::int64_t>(i)] != shape[d]) repeated.push_back(d);
    if (named) ++i;
  }
  out[0] = reshape(sum(call.cotangents[0], repeated), from);
}

void batch_broadcast_in_dim(const BatchCall& call, std::span<Tensor> results) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  BroadcastInDimAttributes attributes{batched_shape(call.size, shape), with_batch(0, dimensions)};
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef broadcast_in_dim_op = {
    .name = "broadcast_in_dim",
    .operands = "x",
    .doc =
        "The operand broadcast to a larger shape: sizes of 1 are repeated, and dimensions that are "
        "not named are new.",
    .example = "broadcast_in_dim(x, {4, 2, 3}, {1, 2})",
    .infer = infer_broadcast_in_dim,
    .sharding_rule = broadcast_in_dim_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.broadcast_in_dim")
              .i64_array("broadcast_dimensions", call.as<BroadcastInDimAttributes>().dimensions)
              .done();
        },
    .read = {.mnemonic = "stablehlo.broadcast_in_dim",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(BroadcastInDimAttributes{
                       text.results[0].shape, text.list({"dims", "broadcast_dimensions"})});
                 }},
    .vjp = broadcast_in_dim_vjp,
    .batch = batch_broadcast_in_dim,
    .parse_attributes = parse_attributes<BroadcastInDimAttributes>,
    .traits = {.repeats_elements = true, .recomputation = Recomputation::kFree},
};

Tensor broadcast_in_dim(In x, Shape shape, Dimensions dimensions) {
  Tensor operand = operand_tensor(broadcast_in_dim_op, x);
  for (std::int64_t& d : dimensions)
    d = normalize_dimension(d, shape.rank(), "broadcast_in_dim", effective_source(x.where));
  return record(broadcast_in_dim_op,
                make_attributes(BroadcastInDimAttributes{std::move(shape), std::move(dimensions)}),
                {&operand}, x.where);
}

Tensor broadcast_to(In x, Shape shape) {
  Tensor operand = operand_tensor("broadcast_to", x);
  const Shape& from = operand.shape();
  if (from == shape) return operand;
  SourceLocation where = effective_source(x.where);
  int lead = shape.rank() - from.rank();
  if (lead < 0)
    throw_invalid(where, "[broadcast_to] ", from, " of rank ", from.rank(),
                  " does not broadcast to ", shape, " of rank ", shape.rank());
  Dimensions dimensions;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] != 1 && from[d] != shape[d + lead])
      throw_invalid(where, "[broadcast_to] ", from, " does not broadcast to ", shape,
                    ": dimension ", d, " = ", from[d], ", dimension ", d + lead, " = ",
                    shape[d + lead]);
    dimensions.push_back(d + lead);
  }
  return broadcast_in_dim(In(operand, where), std::move(shape), std::move(dimensions));
}

Tensor Tensor::reshape(const NewShape& shape, SourceLocation where) const {
  return meshard::reshape(In(*this, where), shape);
}

}  // namespace meshard
