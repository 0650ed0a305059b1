// Operations that say where a value lies. Without a mesh they say nothing.
#include "tests/property/sharded_program_draw.h"

namespace meshard::property {
namespace {

using Known = Draw::Known;

bool draw_placed(Draw& draw, Step& step) {
  if (!draw.take(step, [](const Known&) { return true; })) return false;
  std::optional<Placement> placement = draw.placement(draw.operand(step, 0).type().rank());
  if (!placement) return false;
  step.placement = *std::move(placement);
  return true;
}

bool draw_cleared(Draw& draw, Step& step) {
  return draw.take(step, [](const Known&) { return true; });
}

bool draw_transfer(Draw& draw, Step& step) {
  // Mostly to the devices where the steps are by now; else all go on.
  if (draw.in_jit() || (draw.home() == 0 && !draw.move_on())) return false;
  if (!draw.take_from_elsewhere(step, draw.home())) return false;
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
     draw_placed, moved, true, 16},
    {"clear_sharding", MESHARD_CALL(clear_sharding(A(0))), draw_cleared, moved, true, 3},
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
