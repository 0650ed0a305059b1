#include "meshard/ops/manual_values.h"

#include <algorithm>
#include <optional>

#include "meshard/graph/annotate.h"
#include "meshard/graph/body.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/axis_set.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/collective.h"

namespace meshard {
using namespace internal;
namespace {

// Checks the sharding with which a value of type `full` enters or leaves the manual axes `manual`.
// @error through call.fail: it has another number of dimensions, uses an axis that is not manual
// or a sub-axis, has an open dimension, or has replicated or unreduced axes.
void check_manual_sharding(const OpCall& call, const std::optional<Sharding>& sharding,
                           const AxisList& manual, const TensorType& full) {
  if (!sharding) call.fail("no sharding was given for ", full);
  if (sharding->rank() != static_cast<std::size_t>(full.rank()))
    call.fail("the sharding describes ", sharding->rank(), " dimensions, ", full, " has ",
              full.rank(), ": ", *sharding);
  AxisSet allowed(sharding->mesh(), manual, call.where);
  for (std::size_t d = 0; d < sharding->rank(); ++d) {
    if (sharding->is_open(d))
      call.fail("dimension ", d,
                " is open, but the compiler chooses no sharding over manual axes: ", *sharding);
    if (!allowed.contains(AxisSet(sharding->mesh(), sharding->axes(d), call.where)))
      call.fail("dimension ", d, " is split by ", meshard::to_string(sharding->axes(d)),
                ", but the manual axes are ", meshard::to_string(manual), " of ", sharding->mesh());
  }
  if (!sharding->unreduced_axes().empty() || !sharding->replicated_axes().empty())
    call.fail("replicated or unreduced axes are not allowed here: ", *sharding);
}

// The axes that split a dimension. @pre they are whole axes
AxisSet splitting_axes(const Sharding& sharding) {
  AxisSet axes;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    axes = axes | AxisSet(sharding.mesh(), sharding.axes(d));
  return axes;
}

void infer_full_to_shard(const OpCall& call, ResultTypes& results) {
  const auto& [sharding, manual] = call.as<FullToShardAttributes>();
  check_manual_sharding(call, sharding, manual, call.operand(0));
  Dimensions local;
  for (std::int64_t size : sharding->shard_shape(call.operand(0).shape)) local.push_back(size);
  results.push_back({call.operand(0).dtype, Shape(std::move(local))});
}

AnnotationsPtr annotate_full_to_shard(const Node& node) {
  const auto& [sharding, manual] = node.attributes_as<FullToShardAttributes>();
  const Mesh& mesh = sharding->mesh();
  AxisSet own(mesh, manual, node.where());
  ManualAxes place{mesh, own, splitting_axes(*sharding)};
  if (const ManualAxes* outer = manual_axes(node.operands()[0])) {
    auto fail = [&](const auto&... why) {
      fail_at(node, node.operands()[0].type(), " made at ", node.operands()[0]->where(),
              " is already a local value, ", *outer, why...);
    };
    if (!(outer->mesh == mesh)) fail(": it cannot enter manual axes of another mesh, ", mesh);
    if (AxisSet twice = own & outer->axes; !twice.empty())
      fail(": it cannot enter these manual axes twice, ", twice.to_string(mesh));
    if (own.empty()) fail(": no manual axis to enter is given");
    place.axes = outer->axes | own;
    place.varying = outer->varying | place.varying;
    place.around = outer->around;
    place.around.push_back(outer->axes);
  }
  return annotations_of(std::move(place));
}

// A value that is split otherwise is resharded.
std::vector<AxisMove> moves_into_manual(const Node& node) {
  const Sharding& wanted = *node.attributes_as<FullToShardAttributes>().sharding;
  const Value& operand = node.operands()[0];
  std::optional<Sharding> known = specified_sharding(Tensor(operand));
  if (!known || known->mesh() != wanted.mesh()) return {};
  return axis_moves(*known, wanted);
}

// Every device holds its part of each member.
void batch_full_to_shard(const BatchCall& call, std::span<Tensor> results) {
  FullToShardAttributes attributes = call.as<FullToShardAttributes>();
  attributes.sharding = with_batch_dimension(*attributes.sharding, none);
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef full_to_shard_op = {
    .name = "full_to_shard",
    .operands = "x",
    .doc = "The part of a full value that each device holds: the entry to manual axes.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return exp(t); })(x)",
    .infer = infer_full_to_shard,
    .sharding_rule = whole_rule,
    // On one device the shard is the whole. Over several, lowering makes it an argument of a
    // region.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = shard_to_full(call.cotangents[0], *call.as<FullToShardAttributes>().sharding,
                                 call.operands[0].shape());
        },
    .batch = batch_full_to_shard,
    .annotate = annotate_full_to_shard,
    .communicates = moves_into_manual,
    .parse_attributes = parse_attributes<FullToShardAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor full_to_shard(In x, const Sharding& sharding, AxisSet manual) {
  Tensor operand = operand_tensor(full_to_shard_op, x);
  auto rank = static_cast<std::size_t>(operand.shape().rank());
  return record(full_to_shard_op,
                make_attributes(FullToShardAttributes{
                    sharding.rank() < rank ? sharding.with_rank(rank, x.where) : sharding,
                    manual.of(sharding.mesh())}),
                {&operand}, x.where);
}

namespace {

void infer_shard_to_full(const OpCall& call, ResultTypes& results) {
  const auto& [sharding, shape] = call.as<ShardToFullAttributes>();
  TensorType full{call.operand(0).dtype, shape};
  if (!sharding) call.fail("no sharding was given for ", full);
  check_manual_sharding(call, sharding, AxisSet::all(sharding->mesh()).of(sharding->mesh()), full);
  IntVector shard = sharding->shard_shape(shape);
  if (!std::equal(shard.begin(), shard.end(), call.operand(0).shape.begin(),
                  call.operand(0).shape.end()))
    call.fail("a shard of ", full, " under ", *sharding, " is [", join(shard, ","),
              "], but the local value is ", call.operand(0));
  results.push_back(std::move(full));
}

AnnotationsPtr annotate_shard_to_full(const Node& node) {
  const auto& [sharding, shape] = node.attributes_as<ShardToFullAttributes>();
  const Value& operand = node.operands()[0];
  const ManualAxes* place = manual_axes(operand);
  if (!place || !(place->mesh == sharding->mesh()))
    fail_at(node, operand.type(), " made at ", operand->where(), " is ",
            place ? place->to_string() : std::string("a full value"), ", not a local value of ",
            sharding->mesh());
  AxisSet split = splitting_axes(*sharding), varying = place->varying & place->own();
  if (!place->own().contains(split))
    fail_at(node, *sharding, " splits by axes that are not manual",
            place->depth() > 1 ? " in the innermost region" : "", ": the value is ", *place);
  if (AxisSet dropped = varying - split; !dropped.empty())
    fail_at(node, operand.type(), " made at ", operand->where(), " varies over ",
            dropped.to_string(place->mesh), ", which ", sharding->spec(),
            " does not name: the devices along it hold different values. Combine them first "
            "(all_reduce), or name the axis");
  if (!(varying == split))
    fail_at(node, "the value varies over ", varying.to_string(place->mesh), ", but ",
            sharding->spec(), " splits by ", split.to_string(place->mesh), ": use vary() first");
  if (place->depth() > 1) return annotations_of(place->at_depth(place->depth() - 1));
  return annotations_of(*sharding, sharding->rank());
}

void batch_shard_to_full(const BatchCall& call, std::span<Tensor> results) {
  ShardToFullAttributes attributes = call.as<ShardToFullAttributes>();
  attributes.sharding = with_batch_dimension(*attributes.sharding, none);
  attributes.shape = batched_shape(call.size, attributes.shape);
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef shard_to_full_op = {
    .name = "shard_to_full",
    .operands = "x",
    .doc = "The full value of which each device holds a part: the exit from manual axes.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return t; })(x)",
    .infer = infer_shard_to_full,
    .sharding_rule = whole_rule,
    // On one device the shard is the whole. Over several, lowering makes it a result of a region.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = full_to_shard(call.cotangents[0], *call.as<ShardToFullAttributes>().sharding,
                                 manual_axes(call.operands[0].value())->own());
        },
    .batch = batch_shard_to_full,
    .annotate = annotate_shard_to_full,
    .parse_attributes = parse_attributes<ShardToFullAttributes>,
};

Tensor shard_to_full(In x, const Sharding& sharding, const Shape& shape) {
  Tensor operand = operand_tensor(shard_to_full_op, x);
  if (!manual_axes(operand.value())) operand = collective::local_operand(shard_to_full_op, x);
  auto rank = static_cast<std::size_t>(shape.rank());
  Sharding of_all = sharding.rank() < rank ? sharding.with_rank(rank, x.where) : sharding;
  if (const ManualAxes& place = *manual_axes(operand.value()); place.mesh == of_all.mesh()) {
    AxisSet split = splitting_axes(of_all);
    if (place.own().contains(split)) operand = widened(operand, place.with_varying(split));
  }
  return record(shard_to_full_op, make_attributes(ShardToFullAttributes{std::move(of_all), shape}),
                {&operand}, x.where);
}

extern const OpDef vary_op;
namespace {

struct VaryAttributes {
  AxisList axes;
  MESHARD_FIELDS(axes)
};

AnnotationsPtr annotate_vary(const Node& node) {
  const AxisList& axes = node.attributes_as<VaryAttributes>().axes;
  const ManualAxes* place = manual_axes(node.operands()[0]);
  if (!place) fail_at(node, "takes a local value, not the full ", node.operands()[0].type());
  AxisSet more(place->mesh, axes, node.where());
  if (!place->axes.contains(more))
    fail_at(node, meshard::to_string(axes), " are not all manual here: the value is ", *place);
  return annotations_of(place->with_varying(place->varying | more));
}

// Widens x over the axes that it does not vary over yet.
Tensor varied(const Tensor& x, AxisSet more, SourceLocation where) {
  const ManualAxes& place = *manual_axes(x.value());
  more = more - place.varying;
  if (more.empty()) return x;
  return record(vary_op, make_attributes(VaryAttributes{more.of(place.mesh)}), {&x}, where);
}

}  // namespace

extern constinit const OpDef vary_op = element_wise::define({
    .name = "vary",
    .operands = "x",
    .doc = "The same local value, treated as varying over these manual axes.",
    .example = "manual(Mesh({{\"x\", 1}}), P(), P(\"x\"), [](Tensor t) { return vary(t, \"x\"); "
               "})(x)",
    .domain = DTypeDomain::kAny,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];  // one per device; the caller of the vjp sums them
        },
    .annotate = annotate_vary,
    .parse_attributes = parse_attributes<VaryAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
});

Tensor vary(In x, const CollectiveAxes& axes) {
  Tensor operand = collective::local_operand(vary_op, x);
  const ManualAxes& place = *manual_axes(operand.value());
  return varied(operand, AxisSet(place.mesh, axes.list(), effective_source(x.where)), x.where);
}

Tensor widened(const Tensor& x, const ManualAxes& place) {
  // In a body inside manual axes, what represents a full value is local already.
  BodyScope* body = internal::recorder().body;
  Tensor local = body ? Tensor(body->inside(x.value())) : x;
  for (std::size_t depth = manual_depth(local.value()) + 1; depth <= place.depth(); ++depth)
    local =
        full_to_shard(In(local, x.where()),
                      Sharding::replicated(place.mesh, static_cast<std::size_t>(x.shape().rank())),
                      place.at_depth(depth).own());
  return varied(local, place.varying, x.where());
}

namespace {

// Splits `table` into local values. In nested regions axis k of `axes` splits dimension k; in a
// single one all of them split the only dimension. A full value cannot enter a region inside a loop
// or branch of the region's function, so it enters before the loop.
Tensor enter_table(Tensor table, const ManualAxes& place, const AxisList& axes,
                   SourceLocation where) {
  for (std::size_t depth = 1; depth <= place.depth(); ++depth) {
    OutsideBodiesScope outside(depth);
    AxisSet own = place.at_depth(depth).own();
    std::vector<DimensionSpec> dimensions;
    if (place.depth() == 1) dimensions.emplace_back(axes);
    if (place.depth() > 1)  // each region splits along its own axes
      for (const AxisRef& axis : axes)
        dimensions.emplace_back(own.contains(place.mesh.axis_index(axis.name)) ? AxisList{axis}
                                                                               : AxisList());
    Sharding sharding(place.mesh, PartitionSpec(std::move(dimensions)), where);
    table = full_to_shard(In(table, where), sharding, own);
  }
  return table;
}

// Each device gets its element of a sharded list of all indices, so no device needs to know its own
// number.
Tensor index_along(const ManualAxes& place, const AxisList& axes, SourceLocation where) {
  collective::check_axes("axis_index", place, axes, where);
  AxisSet touched = collective::touched_axes(place.mesh, axes);
  bool by_axes = collective::parts_of_axes(axes).empty();
  AxisList split = by_axes ? axes : touched.of(place.mesh);
  AxesIndex all(place.mesh, split), wanted(place.mesh, axes);
  auto shaped = [&](const Tensor& numbers) {
    if (place.depth() == 1) return numbers;
    Dimensions sizes;
    for (const AxisRef& axis : split) sizes.push_back(place.mesh.axis_size(axis));
    return reshape(numbers, Shape(std::move(sizes)));
  };
  auto table = [&] {
    OutsideBodiesScope outside(1);
    if (by_axes) return shaped(iota(DType::i32, {all.size()}, 0, where));
    std::vector<std::int32_t> listed;
    for (std::int64_t i = 0; i < all.size(); ++i)
      listed.push_back(static_cast<std::int32_t>(wanted(all.offset(i))));
    return shaped(constant(HostArray::from_vector(std::move(listed)), where));
  };
  return reshape(enter_table(table(), place, split, where), {});
}

}  // namespace

Tensor axis_index(const CollectiveAxes& axes, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  const ManualAxes* place = internal::recorder().manual;
  if (!place)
    throw_invalid(where, "[axis_index] ", to_string(axes.list()),
                  ": the index of a device is available only in a function given to manual()");
  return index_along(*place, axes.list(), where);
}

Tensor axis_index(In like, const CollectiveAxes& axes) {
  SourceScope line(like.where);
  SourceLocation where = effective_source(like.where);
  Tensor operand = operand_tensor("axis_index", like);
  const ManualAxes* place = manual_axes(operand.value());
  if (!place)
    throw_invalid(where, "[axis_index] ", operand.type(), " made at ", operand.where(),
                  " is a full value: the index of a device is available only inside manual axes");
  return index_along(*place, axes.list(), where);
}

}  // namespace meshard
