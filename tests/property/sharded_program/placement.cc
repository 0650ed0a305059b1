// Operations that place a value. Without a mesh they do nothing.
#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/host_value.h"

namespace meshard::property {
namespace {

using Known = Draw::Known;

bool draw_placed(Draw& draw, Step& step) {
  if (!draw.take(step, [](const Known&) { return true; })) return false;
  std::optional<Placement> placement = draw.mark(draw.operand(step, 0).type().rank());
  if (!placement || !draw.may_mark(draw.operand(step, 0))) return false;
  step.placement = *std::move(placement);
  return true;
}

// A sum that is not computed yet: the value may be any, but the spec leaves axes for the summands.
bool draw_unreduced(Draw& draw, Step& step) {
  if (draw.in_region() ||
      !draw.take(step, [](const Known& value) { return value.type().dtype != DType::bool_; }))
    return false;
  std::optional<Placement> placement = draw.mark(draw.operand(step, 0).type().rank());
  if (!placement || !draw.may_mark(draw.operand(step, 0)) || !is_closed(placement->spec))
    return false;
  step.placement = *std::move(placement);
  return true;
}

bool draw_cleared(Draw& draw, Step& step) {
  return draw.take(step, [](const Known&) { return true; });
}

bool draw_transfer(Draw& draw, Step& step) {
  if (draw.in_trace() || !draw.take_from_elsewhere(step)) return false;
  std::optional<Placement> placement = draw.placement(draw.operand(step, 0).type().rank());
  if (!placement) return false;
  step.placement = *std::move(placement);
  return true;
}

const Mesh& mesh_of(const Arguments& args) {
  return args.meshes->at(static_cast<std::size_t>(args.step.placement.mesh));
}

Tensor run_unreduced(const Arguments& args) {
  if (!args.meshes) return args.operands[0];
  const Tensor& x = args.operands[0];
  Sharding sharding(mesh_of(args), args.step.placement.spec, static_cast<std::size_t>(x.rank()));
  return mark_sharding(x, sharding.with_unreduced(sharding.unused_axes()));
}

const Operation kPlacements[] = {
    {"mark_sharding", "mark(A(0), M)",
     [](const Arguments& args) {
       return args.meshes ? mark_sharding(args.operands[0], mesh_of(args), args.step.placement.spec)
                          : args.operands[0];
     },
     draw_placed, moved, true, 16, host::same},
    {"mark_unreduced", "mark_unreduced(A(0), M)", run_unreduced, draw_unreduced, moved, true, 3,
     host::same},
    {"clear_sharding", MESHARD_CALL(clear_sharding(A(0))), draw_cleared, moved, true, 3,
     host::same},
    {"transfer", "move(A(0), M)",
     [](const Arguments& args) {
       return args.meshes ? transfer(args.operands[0], mesh_of(args), args.step.placement.spec)
                          : args.operands[0];
     },
     draw_transfer, moved, false, 8},
};

}  // namespace

std::span<const Operation> placement_operations() { return kPlacements; }

}  // namespace meshard::property
