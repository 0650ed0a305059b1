#include "meshard/lowering/internal/partial_sums.h"

#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/sharding/axis_moves.h"
#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

// The sharding that a value has in the program, if that is certain.
std::optional<Sharding> certain_sharding(const Value& value) {
  std::optional<Sharding> sharding = marked_sharding(value);
  if (!sharding)
    if (const Sharding* leaf = leaf_sharding(value)) sharding = *leaf;
  if (!sharding || !sharding->unreduced_axes().empty() || !sharding->is_even(value.type().shape))
    return std::nullopt;
  for (std::size_t d = 0; d < sharding->rank(); ++d)
    if (sharding->is_open(d)) return std::nullopt;
  return sharding->with_rank(static_cast<std::size_t>(value.type().rank()));
}

bool same_axes(const Mesh& mesh, const AxisList& a, const AxisList& b) {
  return remaining_axes(mesh, a) == remaining_axes(mesh, b);
}

}  // namespace

Sharding summed(const Sharding& sharding) {
  return sharding.unreduced_axes().empty() ? sharding : sharding.with_unreduced({});
}

bool has_summands(const Sharding& sharding) {
  const AxisList axes = summed_axes(sharding);
  return !axes.empty() && AxesIndex(sharding.mesh(), axes).size() > 1;
}

const Value* unsummed_operand(const Node& mark) {
  const Sharding& wanted = *mark.attributes_as<ShardingMark>().sharding;
  const Value& operand = mark.operands()[0];
  const Node& made = *operand.node();
  if ((&made.op() != &dot_general_op && &made.op() != &sum_op) || made.annotations())
    return nullptr;
  std::vector<Sharding> operands;
  for (const Value& each : made.operands()) {
    std::optional<Sharding> sharding = certain_sharding(each);
    if (!sharding || sharding->mesh() != wanted.mesh()) return nullptr;
    operands.push_back(*std::move(sharding));
  }
  Propagation inferred = propagate(made.op().sharding_rule(call_of(made)), operands);
  if (!inferred.ok() || inferred.results.size() != 1 ||
      !same_axes(wanted.mesh(), inferred.reduced, wanted.unreduced_axes()) ||
      inferred.results[0].spec() != wanted.spec())
    return nullptr;
  return &operand;
}

stablehlo::Value write_summands(stablehlo::ModuleWriter& writer, stablehlo::Value value,
                                const TensorType& type, const Sharding& sharding,
                                const ProgramMeshes& meshes) {
  using SsaValue = stablehlo::Value;
  const Mesh& mesh = sharding.mesh();
  const AxisList& axes = sharding.unreduced_axes();
  auto with_devices = [&](const TensorType& each) {
    Dimensions sizes = each.shape.sizes();
    sizes.insert(sizes.begin(), AxesIndex(mesh, axes).size());
    return TensorType{each.dtype, Shape(std::move(sizes))};
  };
  std::vector<DimensionSpec> dimensions{DimensionSpec(axes)};
  Dimensions placed;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    dimensions.emplace_back(sharding.axes(d), sharding.is_open(d));
    placed.push_back(static_cast<std::int64_t>(d) + 1);
  }
  // A copy for each device along the axes, of which all but the first are zeros.
  const TensorType copies = with_devices(type), indices = with_devices({DType::i32, type.shape}),
                   truths = with_devices({DType::bool_, type.shape}), scalar{type.dtype, {}};
  SsaValue all = writer.temporary(), index = writer.temporary(), first = writer.temporary(),
           is_first = writer.temporary(), zeros = writer.temporary(), chosen = writer.temporary();
  writer.op("stablehlo.broadcast_in_dim", {{all, copies}}, {{value, type}})
      .i64_array("broadcast_dimensions", placed)
      .done();
  writer.op("stablehlo.iota", {{index, indices}}, {}).i64("iota_dimension", 0).done();
  writer.splat(first, indices, 0);
  writer.op("stablehlo.compare", {{is_first, truths}}, {{index, indices}, {first, indices}})
      .enumeration("comparison_direction", "comparison_direction", "EQ")
      .done();
  writer.splat(zeros, copies, 0);
  writer
      .op("stablehlo.select", {{chosen, copies}},
          {{is_first, truths}, {all, copies}, {zeros, copies}})
      .done();
  SsaValue split = writer.temporary();
  writer.sharding_constraint(
      split, chosen, copies,
      meshes.border_text(Sharding(mesh, PartitionSpec(std::move(dimensions)))));
  // Their sum, which the compiler leaves to the reader.
  SsaValue start = writer.scalar(type.dtype, 0), sum = writer.temporary(),
           result = writer.temporary();
  SsaValue a = writer.block_argument(), b = writer.block_argument();
  writer.op("stablehlo.reduce", {{sum, type}}, {{split, copies}, {start, scalar}})
      .i64_array("dimensions", Dimensions{0})
      .region({{a, scalar}, {b, scalar}},
              [&] {
                SsaValue both = writer.temporary();
                writer.elementwise("stablehlo.add", both, {a, b}, scalar);
                writer.terminate({{both, scalar}});
              })
      .done();
  writer.sharding_constraint(result, sum, type, meshes.border_text(sharding));
  return result;
}

}  // namespace meshard
