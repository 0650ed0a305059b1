#include "meshard/ops/dot_general.h"

#include <algorithm>

#include "meshard/graph/annotate.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/single_row.h"

namespace meshard {
using namespace internal;
namespace {

// The dimensions of a tensor of `rank` that are neither batch nor contracting dimensions.
Dimensions free_dimensions(const Dimensions& batch, const Dimensions& contracting, int rank) {
  Dimensions free;
  for (int d = 0; d < rank; ++d)
    if (!holds(batch, d) && !holds(contracting, d)) free.push_back(d);
  return free;
}

// Checks that the dimensions of one operand exist and that each is named once.
void check_side(const OpCall& call, std::string_view side, const Dimensions& batch,
                const Dimensions& contracting, const TensorType& type) {
  Dimensions seen(static_cast<std::size_t>(type.rank()), 0);
  for (const Dimensions* list : {&batch, &contracting})
    for (std::int64_t d : *list) {
      if (d < 0 || d >= type.rank())
        call.fail(side, " dimension ", d, " is outside 0..", type.rank() - 1, " of ", type);
      if (seen[static_cast<std::size_t>(d)]++)
        call.fail(side, " dimension ", d, " is named twice: batch [", join(batch, ", "),
                  "], contracting [", join(contracting, ", "), "]");
    }
}

void check_pairs(const OpCall& call, std::string_view what, const Dimensions& left,
                 const Dimensions& right) {
  if (left.size() != right.size())
    call.fail("lhs names ", left.size(), " ", what, " dimensions, but rhs names ", right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::int64_t a = call.operand(0).shape[left[i]], b = call.operand(1).shape[right[i]];
    if (a != b)
      call.fail(what, " sizes differ: lhs dimension ", left[i], " = ", a, ", rhs dimension ",
                right[i], " = ", b, " (lhs ", call.operand(0), ", rhs ", call.operand(1), ")");
  }
}

void infer_dot_general(const OpCall& call, ResultTypes& results) {
  const auto& dims = call.as<DotGeneralAttributes>();
  const TensorType &lhs = call.operand(0), &rhs = call.operand(1);
  if (lhs.dtype != rhs.dtype) call.fail("operand dtypes differ: ", lhs, " and ", rhs);
  if (lhs.dtype == DType::bool_) call.fail("takes numbers, not ", lhs);
  if (is_floating(dims.result_dtype) != is_floating(lhs.dtype) ||
      is_complex(dims.result_dtype) != is_complex(lhs.dtype) || dims.result_dtype == DType::bool_)
    call.fail("the result of ", lhs.dtype, " operands cannot be ", dims.result_dtype);
  check_side(call, "lhs", dims.lhs_batch, dims.lhs_contracting, lhs);
  check_side(call, "rhs", dims.rhs_batch, dims.rhs_contracting, rhs);
  check_pairs(call, "batch", dims.lhs_batch, dims.rhs_batch);
  check_pairs(call, "contracting", dims.lhs_contracting, dims.rhs_contracting);
  Dimensions sizes;
  for (std::int64_t d : dims.lhs_batch) sizes.push_back(lhs.shape[d]);
  for (std::int64_t d : free_dimensions(dims.lhs_batch, dims.lhs_contracting, lhs.rank()))
    sizes.push_back(lhs.shape[d]);
  for (std::int64_t d : free_dimensions(dims.rhs_batch, dims.rhs_contracting, rhs.rank()))
    sizes.push_back(rhs.shape[d]);
  results.push_back({dims.result_dtype, Shape(std::move(sizes))});
}

ShardingRule dot_general_rule(const OpCall& call) {
  const auto& dims = call.as<DotGeneralAttributes>();
  const Shape &lhs = call.operand(0).shape, &rhs = call.operand(1).shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> left(static_cast<std::size_t>(lhs.rank())),
      right(static_cast<std::size_t>(rhs.rank())), out;
  auto at = [](InlineVector<int, 6>& factors, std::int64_t d) -> int& {
    return factors[static_cast<std::size_t>(d)];
  };
  for (std::size_t i = 0; i < dims.lhs_batch.size(); ++i) {
    out.push_back(builder.factor(lhs[dims.lhs_batch[i]]));
    at(left, dims.lhs_batch[i]) = at(right, dims.rhs_batch[i]) = out.back();
  }
  for (std::int64_t d : free_dimensions(dims.lhs_batch, dims.lhs_contracting, lhs.rank()))
    out.push_back(at(left, d) = builder.factor(lhs[d]));
  for (std::int64_t d : free_dimensions(dims.rhs_batch, dims.rhs_contracting, rhs.rank()))
    out.push_back(at(right, d) = builder.factor(rhs[d]));
  for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i)
    at(left, dims.lhs_contracting[i]) = at(right, dims.rhs_contracting[i]) =
        builder.factor(lhs[dims.lhs_contracting[i]], FactorKind::kReduction);
  return builder.operand(one_factor_each(left))
      .operand(one_factor_each(right))
      .result(one_factor_each(out))
      .build();
}

// The sharding of the right operand with respect to the result. Batch dimensions follow the left
// operand's sharding, so that one that only the right operand splits is gathered. JAX 0.10 has the
// same rule.
Sharding batch_as_left(const Sharding& right, const Sharding* left,
                       const DotGeneralAttributes& dims) {
  std::vector<DimensionSpec> dimensions = right.spec().dimensions();
  for (std::size_t i = 0; i < dims.rhs_batch.size(); ++i) {
    auto own = static_cast<std::size_t>(dims.rhs_batch[i]);
    if (!left || left->num_tiles(static_cast<std::size_t>(dims.lhs_batch[i])) == 1)
      dimensions[own] = DimensionSpec(AxisList(), right.is_open(own));
  }
  return Sharding(right.mesh(), PartitionSpec(std::move(dimensions))).with_unreduced_of(right);
}

AnnotationsPtr annotate_dot_general(const Node& node) {
  const auto& wanted = node.attributes_as<DotGeneralAttributes>().result_sharding;
  if (!wanted) {
    const Sharding *left = explicit_sharding(node.operands()[0]),
                   *right = explicit_sharding(node.operands()[1]);
    if (!right || manual_axes(node.operands()[0])) return annotate_by_operands(node);
    Sharding counted = batch_as_left(*right, left, node.attributes_as<DotGeneralAttributes>());
    const Sharding* operands[] = {left, &counted};
    return infer_shardings(node, operands);
  }
  auto rank = static_cast<std::size_t>(node.type().rank());
  if (wanted->rank() > rank)
    fail_at(node, "result_sharding describes ", wanted->rank(), " dimensions, the result ",
            node.type(), " has ", rank, ": ", *wanted);
  for (const Value& operand : node.operands()) {
    const Sharding* own = explicit_sharding(operand);
    if (own && own->mesh() != wanted->mesh())
      fail_at(node, "result_sharding is over ", wanted->mesh(), ", but an operand made at ",
              operand->where(), " is over ", own->mesh());
  }
  return annotations_of(*wanted, rank);
}

// One operand for the computation of a cotangent: its batch and contracting dimensions, and where
// its free dimensions begin in the result.
struct Side {
  const Tensor& tensor;
  const Dimensions& batch;
  const Dimensions& contracting;
  std::int64_t first_free;
};

// The sharding with dimension order[i] as dimension i.
Sharding permuted(const Sharding& sharding, const Dimensions& order) {
  std::vector<DimensionSpec> dimensions;
  for (std::int64_t d : order) dimensions.push_back(sharding.spec()[static_cast<std::size_t>(d)]);
  return Sharding(sharding.mesh(), PartitionSpec(std::move(dimensions)));
}

// The cotangent of `wanted`: the result's cotangent times `other`, contracted over the free
// dimensions of `other`, in the dimension order of `wanted`.
Tensor operand_cotangent(const Tensor& cotangent, const Side& wanted, const Side& other) {
  int rank = wanted.tensor.shape().rank();
  Dimensions other_free =
      free_dimensions(other.batch, other.contracting, other.tensor.shape().rank());
  DotDimensions dims;
  for (std::size_t i = 0; i < other.batch.size(); ++i)
    dims.lhs_batch.push_back(static_cast<std::int64_t>(i));
  dims.rhs_batch = other.batch;
  for (std::size_t i = 0; i < other_free.size(); ++i)
    dims.lhs_contracting.push_back(other.first_free + static_cast<std::int64_t>(i));
  dims.rhs_contracting = other_free;

  // The product's dimensions: batch, the free ones of `wanted`, then its contracting ones in the
  // order in which `other` has them.
  Dimensions order = wanted.batch;
  for (std::int64_t d : free_dimensions(wanted.batch, wanted.contracting, rank)) order.push_back(d);
  for (int d = 0; d < other.tensor.shape().rank(); ++d)
    for (std::size_t i = 0; i < other.contracting.size(); ++i)
      if (other.contracting[i] == d) order.push_back(wanted.contracting[i]);
  Dimensions permutation(order.size());
  bool ordered = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    permutation[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    ordered = ordered && order[i] == static_cast<std::int64_t>(i);
  }
  // A cotangent has the sharding of its primal.
  std::optional<Sharding> sharding;
  if (const Sharding* primal = explicit_sharding(wanted.tensor.value()))
    sharding = permuted(*primal, order);
  else if (const Sharding* met = explicit_sharding(cotangent.value()))
    sharding = whole_over_explicit_axes(met->mesh(), order.size());
  Tensor product = dot_general(cotangent, other.tensor, std::move(dims), std::nullopt, sharding);
  if (!ordered) product = permute_dims(product, std::move(permutation));
  return astype(product, wanted.tensor.dtype());
}

void dot_general_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& dims = call.as<DotGeneralAttributes>();
  auto batch = static_cast<std::int64_t>(dims.lhs_batch.size());
  std::int64_t lhs_free =
      call.operands[0].rank() - batch - static_cast<std::int64_t>(dims.lhs_contracting.size());
  Side lhs{call.operands[0], dims.lhs_batch, dims.lhs_contracting, batch};
  Side rhs{call.operands[1], dims.rhs_batch, dims.rhs_contracting, batch + lhs_free};
  if (call.needs(0)) out[0] = operand_cotangent(call.cotangents[0], lhs, rhs);
  if (call.needs(1)) out[1] = operand_cotangent(call.cotangents[0], rhs, lhs);
}

// If both operands are batched, the batch is a new batch dimension. Otherwise it is a new free
// dimension of the batched operand, which the result has after its batch dimensions or further
// back.
void batch_dot_general(const BatchCall& call, std::span<Tensor> results) {
  DotGeneralAttributes dims = call.as<DotGeneralAttributes>();
  bool left = call.batched[0], right = call.batched[1];
  std::size_t at = 0;  // the result's dimension for the batch
  if (!right) at = dims.lhs_batch.size();
  if (!left) at = static_cast<std::size_t>(call.member(0).rank()) - dims.lhs_contracting.size();
  if (left)
    for (Dimensions* list : {&dims.lhs_batch, &dims.lhs_contracting}) *list = behind_batch(*list);
  if (right)
    for (Dimensions* list : {&dims.rhs_batch, &dims.rhs_contracting}) *list = behind_batch(*list);
  if (left && right)
    for (Dimensions* list : {&dims.lhs_batch, &dims.rhs_batch}) *list = with_entry(0, *list);
  if (dims.result_sharding)
    dims.result_sharding = with_batch_dimension(
        *dims.result_sharding, explicit_batch(call.operands[left ? 0 : 1], *dims.result_sharding),
        at);
  record_batched(call, make_attributes(std::move(dims)), call.operands, results);
  if (at == 0) return;
  Dimensions order{static_cast<std::int64_t>(at)};
  for (int d = 0; d < results[0].shape().rank(); ++d)
    if (d != order[0]) order.push_back(d);
  results[0] = permute_dims(results[0], std::move(order));
}

std::unique_ptr<const Attributes> read_dot(const OpText& text) {
  DotGeneralAttributes dims;
  dims.result_dtype = DType::f32;
  std::string_view numbers = text.attribute({"dot_dimension_numbers"});
  if (!numbers.empty()) {
    dims.lhs_batch = list_in(numbers, "lhs_batching_dimensions");
    dims.rhs_batch = list_in(numbers, "rhs_batching_dimensions");
    dims.lhs_contracting = list_in(numbers, "lhs_contracting_dimensions");
    dims.rhs_contracting = list_in(numbers, "rhs_contracting_dimensions");
  } else {  // `[0] x [0]`
    auto halves = [&](std::string_view name, Dimensions& left, Dimensions& right) {
      std::string_view both = text.attribute({name});
      std::size_t middle = both.find("] x [");
      if (middle == std::string_view::npos) return;
      for (std::int64_t d : stablehlo::integers_of(both.substr(0, middle + 1))) left.push_back(d);
      for (std::int64_t d : stablehlo::integers_of(both.substr(middle + 4))) right.push_back(d);
    };
    halves("batching_dims", dims.lhs_batch, dims.rhs_batch);
    halves("contracting_dims", dims.lhs_contracting, dims.rhs_contracting);
  }
  return make_attributes(std::move(dims));
}

}  // namespace

extern constinit const OpDef dot_general_op = {
    .name = "dot_general",
    .operands = "lhs, rhs",
    .example = "dot_general(x, y, {.lhs_contracting = {1}, .rhs_contracting = {1}})",
    .infer = infer_dot_general,
    .sharding_rule = dot_general_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          if (out.quirks.has(Quirk::kSingleRowProducts) && !out.partitioned &&
              emit_single_row_product(call, out))
            return;
          out.op("stablehlo.dot_general")
              .dimension_numbers("dot_dimension_numbers", call.as<DotGeneralAttributes>())
              .done();
        },
    .read = {.mnemonic = "stablehlo.dot_general", .attributes = read_dot},
    .vjp = dot_general_vjp,
    .batch = batch_dot_general,
    .annotate = annotate_dot_general,
    .parse_attributes = parse_attributes<DotGeneralAttributes>,
    .traits = {.is_product = true},
};

Tensor dot_general(In lhs, In rhs, DotDimensions dimensions, std::optional<DType> result_dtype,
                   std::optional<Sharding> result_sharding) {
  SourceScope line(lhs.where);
  SourceLocation where = effective_source(lhs.where);
  DType dtype = element_wise::common_dtype(dot_general_op, lhs, rhs);
  Tensor left = element_wise::to_tensor(lhs, dtype), right = element_wise::to_tensor(rhs, dtype);
  auto normalize = [&](Dimensions& list, const Tensor& tensor) {
    for (std::int64_t& d : list)
      d = normalize_dimension(d, tensor.shape().rank(), "dot_general", where);
  };
  normalize(dimensions.lhs_contracting, left);
  normalize(dimensions.lhs_batch, left);
  normalize(dimensions.rhs_contracting, right);
  normalize(dimensions.rhs_batch, right);
  // On a mesh of auto axes the sharding is a constraint for the compiler, not part of the value.
  std::optional<Sharding> wish;
  if (result_sharding && !result_sharding->mesh().has_explicit_axes()) wish.swap(result_sharding);
  Tensor product =
      record(dot_general_op,
             make_attributes(DotGeneralAttributes{
                 std::move(dimensions), result_dtype.value_or(dtype), std::move(result_sharding)}),
             {&left, &right}, where);
  return wish ? sharding_constraint(product, *wish) : product;
}

}  // namespace meshard
