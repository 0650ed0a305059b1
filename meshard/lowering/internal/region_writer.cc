// Tested in meshard/lowering/lower_test.cc.
// NodeWriter: manual regions.
#include <utility>

#include "meshard/lowering/internal/node_writer.h"

namespace meshard {
namespace {

using stablehlo::Typed;

// The type outside: the values of all devices together, with padding.
TensorType outer_type(const RegionCrossing& crossing) {
  const TensorType& local = crossing.type;
  Dimensions sizes;
  if (crossing.full) {
    for (std::int64_t size : crossing.sharding.padded_shape(crossing.full.type().shape))
      sizes.push_back(size);
  } else {
    sizes = local.shape.sizes();
    if (sizes.size() < crossing.sharding.rank()) sizes.push_back(1);
    for (std::size_t d = 0; d < sizes.size(); ++d) sizes[d] *= crossing.sharding.num_tiles(d);
  }
  return {local.dtype, Shape(std::move(sizes))};
}

// The type of the region's argument or result: a carried scalar has one dimension.
TensorType inner_type(const RegionCrossing& crossing) {
  TensorType type = crossing.type;
  if (static_cast<std::size_t>(type.rank()) < crossing.sharding.rank()) type.shape = Shape{1};
  return type;
}

std::vector<Typed> typed(std::span<const stablehlo::Value> values,
                         const std::vector<TensorType>& types) {
  std::vector<Typed> all;
  for (std::size_t i = 0; i < types.size(); ++i) all.emplace_back(values[i], types[i]);
  return all;
}

template <class TypeOf>
std::vector<TensorType> types_of(const std::vector<RegionCrossing>& crossings, TypeOf type_of) {
  std::vector<TensorType> types;
  for (const RegionCrossing& crossing : crossings) types.push_back(type_of(crossing));
  return types;
}

stablehlo::Value reshaped(stablehlo::ModuleWriter& writer, stablehlo::Value value,
                          const TensorType& from, const TensorType& to) {
  if (from == to) return value;
  stablehlo::Value result = writer.temporary();
  writer.op("stablehlo.reshape", {{result, to}}, {{value, from}}).done();
  return result;
}

// The sharding as Shardy needs it. If some axes are not manual, every dimension is open to them,
// and the region's manual axes that split nothing are marked replicated. The axes of enclosing
// regions must not appear.
Sharding border_sharding(const ManualAxes& place, const Sharding& sharding) {
  if (place.axes == AxisSet::all(place.mesh)) return sharding;
  std::vector<DimensionSpec> dimensions;
  AxisSet split;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    dimensions.emplace_back(sharding.axes(d), true);
    split = split | AxisSet(place.mesh, sharding.axes(d));
  }
  return Sharding(place.mesh, PartitionSpec(std::move(dimensions)), SourceLocation{})
      .with_replicated((place.own() - split).of(place.mesh), SourceLocation{});
}

}  // namespace

std::string NodeWriter::shardings_text(const ManualRegion& region,
                                       const std::vector<RegionCrossing>& crossings) const {
  std::vector<Sharding> shardings;
  for (const RegionCrossing& crossing : crossings)
    shardings.push_back(border_sharding(region.place, crossing.sharding));
  return meshes_.shardings_text(shardings);
}

void NodeWriter::write(const ProgramOrder& order, const ManualRegion& region) {
  std::vector<TensorType> given_types = types_of(region.inputs, outer_type);
  std::vector<TensorType> made_types = types_of(region.outputs, outer_type);
  std::vector<SsaValue> given, made;
  for (std::size_t i = 0; i < region.inputs.size(); ++i) {
    const RegionCrossing& input = region.inputs[i];
    given.push_back(input.full ? pad(value_of(input.full), input.full.type(), given_types[i],
                                     graph_.number(input.local.node()))
                               : carrier(input.local, depth_));
  }
  for (std::size_t i = 0; i < region.outputs.size(); ++i) made.push_back(writer_.temporary());

  std::vector<TensorType> argument_types = types_of(region.inputs, inner_type);
  std::vector<SsaValue> arguments;
  for (std::size_t i = 0; i < region.inputs.size(); ++i)
    arguments.push_back(writer_.block_argument());
  writer_.op("sdy.manual_computation", typed(made, made_types), typed(given, given_types))
      .raw("in_shardings", shardings_text(region, region.inputs))
      .raw("manual_axes",
           cat("#sdy<manual_axes", region.place.own().to_string(region.place.mesh), ">"))
      .raw("out_shardings", shardings_text(region, region.outputs))
      .region(typed(arguments, argument_types), [&] { write_body(order, region, arguments); })
      .done();

  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    const RegionCrossing& output = region.outputs[i];
    if (!output.full) {
      carrier(output.local, depth_) = made[i];
      continue;
    }
    std::uint32_t number = graph_.number(output.full.node());
    SsaValue value = cut(made[i], made_types[i], output.full.type(), number);
    if (std::string text = pin_text(*output.full.node(), 0); !text.empty()) {
      SsaValue computed = std::exchange(value, writer_.temporary());
      writer_.sharding_constraint(value, computed, output.full.type(), text, location_of(number));
    }
    first_result_[number - leaves_.size()] = value;
  }
}

void NodeWriter::write_body(const ProgramOrder& order, const ManualRegion& region,
                            std::span<const SsaValue> arguments) {
  auto around = entered_;
  std::optional<SsaValue> taken = std::exchange(taken_, std::nullopt);
  ++depth_;
  for (std::size_t i = 0; i < region.inputs.size(); ++i) {
    const RegionCrossing& input = region.inputs[i];
    SsaValue value = reshaped(writer_, arguments[i], inner_type(input), input.type);
    if (manual_depth(input.local) > depth_)
      carrier(input.local, depth_) = value;
    else
      entered_[{input.local.node(), input.local.index()}] = value;
  }
  write(order, region.steps);
  std::vector<SsaValue> returned;
  for (const RegionCrossing& output : region.outputs) {
    SsaValue value = manual_depth(output.local) > depth_ ? carrier(output.local, depth_)
                                                         : value_of(output.local);
    returned.push_back(reshaped(writer_, value, output.type, inner_type(output)));
  }
  writer_.terminate(typed(returned, types_of(region.outputs, inner_type)), "sdy.return");
  --depth_;
  taken_ = taken;
  entered_ = std::move(around);
}

}  // namespace meshard
