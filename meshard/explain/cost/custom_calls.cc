#include "meshard/explain/cost/custom_calls.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "meshard/base/json_reader.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/cost/flops.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

// Sorted. Targets that mark a value, allocate memory, or rename it.
constexpr std::string_view kTakesNoTime[] = {"AllocateBuffer",
                                             "AssumeGatherIndicesInBound",
                                             "AsyncCollectiveDone",
                                             "AsyncCollectiveStart",
                                             "ConcatBitcast",
                                             "LayoutConstraint",
                                             "MoveToDevice",
                                             "MoveToHost",
                                             "SPMDFullToShardShape",
                                             "SPMDShardToFullShape",
                                             "Sharding",
                                             "annotate_device_placement"};
static_assert(std::is_sorted(std::begin(kTakesNoTime), std::end(kTakesNoTime)));

// A number that may be written as text, as protobuf writes 64-bit integers; 0 if there is none.
double number_in(const JsonValue& object, std::string_view name) {
  const JsonValue* found = object.find(name);
  if (!found || (!found->is(JsonValue::Kind::kNumber) && !found->is(JsonValue::Kind::kString)))
    return 0;
  double number = 0;
  std::from_chars(found->text.data(), found->text.data() + found->text.size(), number);
  return number > 0 ? number : 0;
}

// Reads the part of a TPU kernel's backend config that describes its cost.
void read_config(CustomCall& call) {
  std::string_view config = call.instruction->backend_config;
  if (config.find("custom_call_config") == std::string_view::npos) return;
  Result<JsonValue> read = read_json(config);
  if (!read.ok()) return;
  const JsonValue* kernel = read->find("custom_call_config");
  if (!kernel) return;
  if (const JsonValue* sends = kernel->find("has_communication"))
    call.communicates = sends->is(JsonValue::Kind::kBool) && sends->truth;
  const JsonValue* estimate = kernel->find("cost_estimate");
  if (!estimate) return;
  CustomCallCost cost{.flops = number_in(*estimate, "flops"),
                      .transcendentals = number_in(*estimate, "transcendentals"),
                      .link_bytes = number_in(*estimate, "remote_bytes_transferred")};
  if (estimate->find("bytes_accessed")) cost.memory_bytes = number_in(*estimate, "bytes_accessed");
  call.communicates = call.communicates || cost.link_bytes > 0;
  call.cost = cost;
  call.source = CustomCallSource::kStated;
}

// `mymm.1` -> `mymm`
std::string without_number(std::string_view name) {
  std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < name.size() &&
      name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos)
    name = name.substr(0, dot);
  return std::string(name);
}

CustomCall described(const InstructionIndex& in, const HloInstruction& one,
                     std::int64_t executions) {
  CustomCall call{.instruction = &one, .name = one.custom_call_target, .executions = executions};
  // Compilers name the instruction after the kernel.
  if (one.custom_call_target == "tpu_custom_call") call.name = without_number(one.name);
  for (const HloInstruction* operand : in.operands(one))
    call.operand_bytes = saturating_add(call.operand_bytes, operand->shape.byte_size());
  call.result_bytes = one.shape.byte_size();
  if (operations_of(in, one).matrix > 0) call.source = CustomCallSource::kCounted;
  read_config(call);
  return call;
}

}  // namespace

std::string_view to_string(CustomCallSource source) { return enum_name(source); }

std::vector<CustomCall> custom_calls_of(const Executions& executions) {
  std::vector<CustomCall> calls;
  for (const HloComputation& each : executions.module().module().computations) {
    const ReachedComputation* reached = executions.calls().find(each.id);
    if (!reached || &reached->index->computation() != &each) continue;
    const ComputationRuns& runs = *executions.find(each.id);
    for (const HloInstruction& one : each.instructions)
      if (one.opcode == "custom-call" &&
          !std::binary_search(std::begin(kTakesNoTime), std::end(kTakesNoTime),
                              std::string_view(one.custom_call_target)))
        calls.push_back(described(*reached->index, one, runs.executions));
  }
  return calls;
}

}  // namespace meshard
