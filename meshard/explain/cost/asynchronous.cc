// Tested in meshard/explain/cost/schedule_test.cc.
#include "meshard/explain/cost/asynchronous.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace meshard {
namespace {

// How many operands are followed from an end to its start.
constexpr int kMostOperands = 64;

const InstructionIndex* body_of_fusion(const ModuleIndex& module, const HloInstruction& one) {
  return one.opcode == "fusion" ? module.called(one) : nullptr;
}

bool contains_call(const ModuleIndex& module, const HloInstruction& one, std::string_view target) {
  const InstructionIndex* inside = body_of_fusion(module, one);
  if (inside == nullptr) return false;
  const auto& instructions = inside->computation().instructions;
  return std::any_of(instructions.begin(), instructions.end(),
                     [&](const HloInstruction& each) { return each.custom_call_target == target; });
}

// The channel of the collective in a fusion; none if there is none.
std::optional<std::int64_t> channel_in(const ModuleIndex& module, const HloInstruction& one) {
  if (const InstructionIndex* inside = body_of_fusion(module, one))
    for (const HloInstruction& each : inside->computation().instructions)
      if (each.channel_id != 0) return each.channel_id;
  return std::nullopt;
}

}  // namespace

bool starts_asynchronous(const ModuleIndex& module, const HloInstruction& one) {
  return one.opcode.ends_with("-start") || one.opcode == "send" || one.opcode == "recv" ||
         contains_call(module, one, "AsyncCollectiveStart");
}

bool ends_asynchronous(const ModuleIndex& module, const HloInstruction& one) {
  return one.opcode.ends_with("-done") || contains_call(module, one, "AsyncCollectiveDone");
}

AsynchronousPairs::AsynchronousPairs(const ModuleIndex& module, const InstructionIndex& in) {
  std::unordered_map<std::int64_t, const HloInstruction*> on_channel;
  for (const HloInstruction* one : in.in_run_order()) {
    if (starts_asynchronous(module, *one)) {
      if (auto channel = channel_in(module, *one)) on_channel[*channel] = one;
    } else if (ends_asynchronous(module, *one)) {
      if (auto channel = channel_in(module, *one)) {
        if (auto found = on_channel.find(*channel); found != on_channel.end())
          start_of_[one] = found->second;
        continue;
      }
      const HloInstruction* at = in.operand(*one, 0);
      for (int step = 0; at && step < kMostOperands; ++step) {
        if (starts_asynchronous(module, *at)) {
          start_of_[one] = at;
          break;
        }
        at = in.operand(*at, 0);
      }
    }
  }
}

const HloInstruction* AsynchronousPairs::start_of(const HloInstruction& end) const {
  auto found = start_of_.find(&end);
  return found == start_of_.end() ? nullptr : found->second;
}

}  // namespace meshard
