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

const Operation kPlacements[] = {
    {"mark_sharding", "mark(A(0), M)",
     [](const Arguments& args) {
       return args.meshes ? mark_sharding(args.operands[0], mesh_of(args), args.step.placement.spec)
                          : args.operands[0];
     },
     draw_placed, moved, true, 16, host::same},
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
