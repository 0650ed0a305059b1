// Tested in meshard/lowering/internal/host_calls_test.cc.
// NodeWriter: calls of functions of this process, and NaN checks.
#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/lowering/internal/node_writer.h"
#include "meshard/ops/definition/host_call.h"

namespace meshard {
namespace {

using stablehlo::Typed;

TensorType scalar_of(DType dtype) { return {dtype, {}}; }

// The axes that the values vary over inside manual axes.
AxisSet varying_axes(const Node& node, std::size_t first) {
  AxisSet varying;
  for (std::size_t i = first; i < node.operands().size(); ++i)
    if (const ManualAxes* manual = manual_axes(node.operands()[i]))
      varying = varying | manual->varying;
  return varying;
}

// What each logical device prints in front of its text: its coordinates along `varying`. Of the
// devices that differ along other axes only, the first prints.
std::string places_text(const Mesh& mesh, AxisSet varying, const Mesh& numbering) {
  std::vector<std::string> places(static_cast<std::size_t>(numbering.size()), "-");
  for (std::int64_t id : mesh.device_ids()) {
    IntVector coordinate = *mesh.coordinate(id);
    std::string place;
    bool prints = true;
    for (std::size_t a = 0; a < mesh.rank(); ++a) {
      if (varying.contains(a))
        append(place, cat(place.empty() ? "" : ", ", mesh.axes()[a].name, "=", coordinate[a]));
      else
        prints = prints && coordinate[a] == 0;
    }
    if (prints) places[static_cast<std::size_t>(*numbering.position(id))] = place;
  }
  return join(places, ";");
}

bool may_be_nan(DType dtype) {
  return is_complex(dtype) || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 ||
         dtype == DType::f64;
}

}  // namespace

// Writes `body(arguments, results)` so that each device runs it, with whole arguments: in a manual
// region over the axes that are not manual yet.
template <class Body>
void NodeWriter::on_each_device(const ManualAxes* place, std::span<const Typed> arguments,
                                std::span<const Typed> results, Body body) {
  bool one_device = !meshes_.numbering() || meshes_.numbering()->size() == 1;
  if (one_device) return body(arguments, results);
  Mesh mesh = place ? place->mesh : *meshes_.numbering();
  Mesh printed = printed_mesh(mesh);
  AxisSet rest = AxisSet::all(printed) - (place ? place->axes : AxisSet());
  if (rest.empty()) return body(arguments, results);
  auto whole = [&](std::span<const Typed> values) {
    std::vector<Sharding> replicated;
    for (const Typed& value : values)
      replicated.push_back(
          Sharding::replicated(mesh, static_cast<std::size_t>(value.type->rank())));
    return meshes_.shardings_text(replicated);
  };
  std::vector<Typed> inner, made;
  for (const Typed& argument : arguments)
    inner.emplace_back(writer_.block_argument(), *argument.type);
  for (const Typed& result : results) made.emplace_back(writer_.temporary(), *result.type);
  writer_.op("sdy.manual_computation", results, arguments)
      .raw("in_shardings", whole(arguments))
      .raw("manual_axes", cat("#sdy<manual_axes", rest.to_string(printed), ">"))
      .raw("out_shardings", whole(results))
      .region(inner,
              [&] {
                body(std::span<const Typed>(inner), std::span<const Typed>(made));
                writer_.terminate(made, "sdy.return");
              })
      .done();
}

// Writes `effect()`, which defines `nothing`, so that only the devices that take the surrounding
// body have the effect.
template <class Effect>
void NodeWriter::where_taken(const Typed& nothing, Effect effect) {
  Typed either(writer_.temporary(), *nothing.type);
  writer_.op("stablehlo.if", {either}, {{*taken_, scalar_of(DType::bool_)}})
      .region({},
              [&] {
                effect();
                writer_.terminate({nothing});
              })
      .region({},
              [&] {
                Typed zero(writer_.temporary(), *nothing.type);
                writer_.splat(zero.value, *nothing.type, 0);
                writer_.terminate({zero});
              })
      .done();
}

void NodeWriter::emit_host_call(const Node& node, const OpCall& call, const OpEmission& out) {
  HostCallText text = *host_call_text(call);
  const ManualAxes* place =
      node.annotations() && node.annotations()->manual ? &*node.annotations()->manual : nullptr;
  bool one_device = !meshes_.numbering() || meshes_.numbering()->size() == 1;
  bool numbered = text.is_effect && !one_device;
  if (numbered) {
    const Mesh& mesh = place ? place->mesh : *meshes_.numbering();
    AxisSet varying = place ? varying_axes(node, text.first_operand) : AxisSet();
    text.attributes.emplace_back(kPlaces,
                                 places_text(mesh, varying, meshes_.numbering_inside(mesh)));
  }
  const TensorType number = scalar_of(DType::u32);
  const Typed nothing(writer_.temporary(), effect_type());
  std::span<const Typed> results = text.is_effect ? std::span(&nothing, 1) : out.results;
  auto write = [&] {
    on_each_device(place, out.operands.subspan(text.first_operand), results,
                   [&](std::span<const Typed> given, std::span<const Typed> made) {
                     std::vector<Typed> arguments(given.begin(), given.end());
                     if (numbered) {
                       arguments.emplace_back(writer_.temporary(), number);
                       writer_.op("stablehlo.partition_id", {arguments.back()}, {}).done();
                     }
                     write_host_call(writer_, text, made, arguments, out.location);
                   });
  };
  if (text.is_effect && taken_)
    where_taken(nothing, write);
  else
    write();
  if (text.is_effect)
    writer_.op("stablehlo.reshape", out.results, out.operands.first(1), out.location).done();
}

// True if an element of the value is NaN: a bool of rank 0.
NodeWriter::SsaValue NodeWriter::has_nan(SsaValue value, const TensorType& type) {
  auto [known, fresh] = has_nan_.try_emplace({static_cast<int>(value.kind), value.number});
  if (!fresh) return known->second;
  const TensorType scalar = scalar_of(DType::bool_);
  const TensorType bools{DType::bool_, type.shape};
  SsaValue each = writer_.temporary(), any = writer_.temporary();
  SsaValue start = writer_.scalar(DType::bool_, 0);
  writer_.op("stablehlo.compare", {{each, bools}}, {{value, type}, {value, type}})
      .enumeration("comparison_direction", "comparison_direction", "NE")
      .done();
  Dimensions all;
  for (std::int64_t d = 0; d < type.rank(); ++d) all.push_back(d);
  SsaValue a = writer_.block_argument(), b = writer_.block_argument();
  writer_.op("stablehlo.reduce", {{any, scalar}}, {{each, bools}, {start, scalar}})
      .i64_array("dimensions", all)
      .region({{a, scalar}, {b, scalar}},
              [&] {
                SsaValue both = writer_.temporary();
                writer_.elementwise("stablehlo.or", both, {a, b}, scalar);
                writer_.terminate({{both, scalar}});
              })
      .done();
  return known->second = any;
}

void NodeWriter::report_nan(const ManualAxes* place, SsaValue found, NanCheck check) {
  const TensorType scalar = scalar_of(DType::bool_);
  HostCallText text{.attributes = {{"kind", std::string(kNanCall)},
                                   {"program", std::to_string(nan_checks_->number())},
                                   {"check", std::to_string(nan_checks_->add(std::move(check)))}},
                    .is_effect = true};
  if (taken_) {
    SsaValue there = writer_.temporary();
    writer_.elementwise("stablehlo.and", there, {found, *taken_}, scalar);
    found = there;
  }
  const Typed given(found, scalar), nothing(writer_.temporary(), effect_type());
  on_each_device(place, {&given, 1}, {&nothing, 1},
                 [&](std::span<const Typed> arguments, std::span<const Typed> made) {
                   write_host_call(writer_, text, made, arguments, {});
                 });
}

// Reports the node if it produces a NaN although none of its operands has one.
void NodeWriter::check_nan(const Node& node, const Node& takes) {
  if (!bodies_of(node).empty()) return;  // their own nodes are checked
  const TensorType scalar = scalar_of(DType::bool_);
  auto either = [&](SsaValue a, SsaValue b) {
    SsaValue both = writer_.temporary();
    writer_.elementwise("stablehlo.or", both, {a, b}, scalar);
    return both;
  };
  std::optional<SsaValue> produced, given;
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
    if (!may_be_nan(node.type(i).dtype)) continue;
    SsaValue found = has_nan(value_of(Value(const_cast<Node*>(&node), i)), node.type(i));
    produced = produced ? either(*produced, found) : found;
  }
  if (!produced) return;
  for (const Value& operand : takes.operands()) {
    if (!may_be_nan(operand.type().dtype)) continue;
    SsaValue found = has_nan(value_of(operand), operand.type());
    given = given ? either(*given, found) : found;
  }
  if (given) {
    SsaValue clean = writer_.temporary(), both = writer_.temporary();
    writer_.elementwise("stablehlo.not", clean, {*given}, scalar);
    writer_.elementwise("stablehlo.and", both, {*produced, clean}, scalar);
    produced = both;
  }
  const ManualAxes* place =
      node.annotations() && node.annotations()->manual ? &*node.annotations()->manual : nullptr;
  report_nan(place, *produced,
             {.op = std::string(node.op().name), .type = node.type(0), .where = node.where()});
}

void NodeWriter::check_result(std::size_t i) {
  const Value& result = graph_.results()[i];
  if (!nan_checks_ || !may_be_nan(result.type().dtype)) return;
  report_nan(nullptr, has_nan(value_of(result), result.type()),
             {.op = {}, .result = i, .type = result.type(), .where = result->where()});
}

}  // namespace meshard
