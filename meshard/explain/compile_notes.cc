#include "meshard/explain/compile_notes.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using pjrt::ElementType;

bool is_narrow(ElementType type) { return type == ElementType::kBf16 || type == ElementType::kF16; }

// True if the value is a conversion from a 16-bit float, alone or as the result of a fusion.
bool is_widened(const ModuleIndex& index, const InstructionIndex& computation,
                const HloInstruction* value) {
  if (!value) return false;
  const InstructionIndex* inside = &computation;
  if (value->opcode == "fusion") {
    inside = index.called(*value);
    value = inside ? inside->root() : nullptr;
  }
  if (!value || value->opcode != "convert" || value->shape.element != ElementType::kF32)
    return false;
  const HloInstruction* from = inside->operand(*value, 0);
  return from && is_narrow(from->shape.element);
}

// True if XLA widened the sum: it then names the function that adds two numbers so
// (xla/service/all_reduce_promotion.cc).
bool is_promoted(const ModuleIndex& index, const HloInstruction& instruction) {
  const InstructionIndex* adds = index.called(instruction);
  return adds && adds->computation().name.ends_with("_promoted");
}

}  // namespace

std::vector<std::string> notes_on_lines(const HloModule& module,
                                        const std::vector<Collective>& collectives) {
  if (collectives.empty()) return {};
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      // Without locations in a text, MLIR's parser sets those of the text itself, in the file `-`.
      if (const std::string& file = instruction.metadata.source_file; !file.empty() && file != "-")
        return {};
  return {
      "the module has no source lines, so collectives are shown by the names of ops, or by lines "
      "of "
      "the module's text (-:5). Write it with debug information: in JAX "
      "lowered.as_text(debug_info=True), in MLIR --mlir-print-debuginfo"};
}

std::vector<std::string> notes_on_missing_handlers(const HloModule& module,
                                                   const std::vector<std::string>& targets) {
  std::size_t count = 0;
  std::set<std::string> called;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& each : computation.instructions) {
      if (each.opcode != "custom-call" ||
          std::find(targets.begin(), targets.end(), each.custom_call_target) == targets.end())
        continue;
      ++count;
      called.insert(each.custom_call_target);
    }
  if (count == 0) return {};
  return {cat(count, count == 1 ? " custom call has" : " custom calls have", " no handler here (",
              join(called, ", "),
              "): the program is explained, but it runs only where the handlers are")};
}

std::vector<std::string> notes_on_widening(const ModuleIndex& index,
                                           const std::vector<Collective>& collectives) {
  std::unordered_set<std::string_view> names;
  for (const Collective& one : collectives) names.insert(one.instruction);
  std::size_t widened = 0;
  for (const HloComputation& computation : index.module().computations) {
    const InstructionIndex* found = index.find(computation.id);
    for (const HloInstruction& instruction : computation.instructions) {
      if (!found || !names.contains(instruction.name)) continue;
      std::vector<const HloInstruction*> operands = found->operands(instruction);
      widened += is_promoted(index, instruction) ||
                 std::any_of(operands.begin(), operands.end(), [&](const HloInstruction* operand) {
                   return is_widened(index, *found, operand);
                 });
    }
  }
  if (widened == 0) return {};
  return {cat(widened, widened == 1 ? " collective moves" : " collectives move",
              " 16-bit floats as f32, because the CPU compiler widens them: other hardware mostly "
              "moves half of these bytes")};
}

}  // namespace meshard
