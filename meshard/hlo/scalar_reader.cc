// Tested in meshard/hlo/trip_count_test.cc.
#include "meshard/hlo/internal/scalar_reader.h"

#include <string_view>

namespace meshard::internal {
namespace {

constexpr int kMostDepth = 128;
constexpr std::int64_t kMostValue = std::int64_t{1} << 48;  // keeps sums from overflowing

// True if the op passes its first operand on unchanged, also when that is a tuple.
bool is_passed_on(std::string_view opcode) {
  return opcode == "copy" || opcode == "bitcast" || opcode == "reshape" || opcode == "convert" ||
         opcode == "optimization-barrier" || opcode == "opt-barrier" || opcode == "domain" ||
         opcode == "add-dependency" || opcode == "copy-done";
}

const ScalarPlace kNowhere = {};

}  // namespace

ScalarPlace ScalarReader::operand(const ScalarPlace& of, std::size_t number) {
  return {of.computation, of.computation->operand(*of.instruction, number), of.frame, of.path};
}

ScalarPlace ScalarReader::result_of_iteration(const InstructionIndex& computation,
                                              std::optional<std::int64_t> element) {
  const ScalarFrame& frame = frames_.emplace_back(ScalarFrame{.kind = ScalarFrame::Kind::kState});
  ScalarPlace place{&computation, computation.root(), &frame};
  if (element) place.path.push_back(*element);
  return place;
}

bool ScalarReader::is_unchanged(const InstructionIndex& body, std::int64_t element) {
  return read(result_of_iteration(body, element)) == ScalarValue{element, 0};
}

// An element that the loop does not change equals the same element of the loop's operand.
ScalarPlace ScalarReader::through_loop(const ScalarPlace& place) {
  const InstructionIndex* body = module_.called(*place.instruction, 0);
  if (body == nullptr || place.path.empty() || depth_ > kMostDepth) return kNowhere;
  ++depth_;
  bool unchanged = is_unchanged(*body, place.path.back());
  --depth_;
  return unchanged ? operand(place, 0) : kNowhere;
}

ScalarPlace ScalarReader::into_call(const ScalarPlace& place) {
  const InstructionIndex* called = module_.called(*place.instruction);
  if (called == nullptr) return kNowhere;
  const ScalarFrame& frame = frames_.emplace_back(
      ScalarFrame{ScalarFrame::Kind::kCall, place.computation, place.instruction, place.frame});
  return {called, called->root(), &frame, place.path};
}

// The value that a parameter refers to; the place itself if it is a loop variable.
ScalarPlace ScalarReader::parameter(const ScalarPlace& place) {
  const ScalarFrame& frame = *place.frame;
  auto number = static_cast<std::size_t>(place.instruction->parameter_number);
  if (frame.kind == ScalarFrame::Kind::kState) return place;
  if (frame.kind == ScalarFrame::Kind::kCall)
    return {frame.caller, frame.caller->operand(*frame.call, number), frame.outer, place.path};
  const ReachedComputation* reached = calls_.find(place.computation->computation().id);
  if (reached == nullptr || reached->num_calls != 1) return kNowhere;
  ScalarPlace call{reached->caller, reached->call, place.frame, place.path};
  switch (reached->kind) {
    case CallKind::kCall:
    case CallKind::kFusion: return operand(call, number);
    case CallKind::kLoopBody:
    case CallKind::kLoopCondition: return through_loop(call);
    default: return kNowhere;
  }
}

// One step toward the defining instruction; the place itself if it is already there.
ScalarPlace ScalarReader::step(const ScalarPlace& place) {
  const HloInstruction& one = *place.instruction;
  std::string_view opcode = one.opcode;
  if (is_passed_on(opcode)) return operand(place, 0);
  // A copy-start's result is (copy, operand, context); only copy-done reads the copy.
  if (opcode == "copy-start") return operand(place, 0);
  if (opcode == "get-tuple-element") {
    ScalarPlace next = operand(place, 0);
    next.path.push_back(one.tuple_index);
    return next;
  }
  if (opcode == "tuple") {
    if (place.path.empty()) return place;
    std::int64_t element = place.path.back();
    ScalarPlace next = operand(place, static_cast<std::size_t>(element));
    next.path.pop_back();
    return next;
  }
  if (opcode == "fusion" || opcode == "call") return into_call(place);
  if (opcode == "async-done" || opcode == "async-update") {
    ScalarPlace start = operand(place, 0);
    if (start.instruction && start.instruction->opcode == "async-start") return into_call(start);
    return start;
  }
  if (opcode == "while") return through_loop(place);
  if (opcode == "parameter") return parameter(place);
  return place;
}

ScalarPlace ScalarReader::source(ScalarPlace place) {
  while (place.instruction != nullptr) {
    if (--steps_left_ < 0) return kNowhere;
    ScalarPlace next = step(place);
    bool stays = next.instruction == place.instruction && next.frame == place.frame &&
                 next.path == place.path;
    if (stays) return place;
    place = std::move(next);
  }
  return kNowhere;
}

std::optional<ScalarValue> ScalarReader::read(const ScalarPlace& place) {
  ScalarPlace made = source(place);
  if (made.instruction == nullptr || depth_ > kMostDepth) return std::nullopt;
  const HloInstruction& one = *made.instruction;
  if (one.opcode == "parameter") {
    if (made.path.size() != 1) return std::nullopt;
    return ScalarValue{made.path[0], 0};
  }
  if (!made.path.empty()) return std::nullopt;
  if (one.opcode == "constant") {
    if (!one.literal || *one.literal > kMostValue || *one.literal < -kMostValue)
      return std::nullopt;
    return ScalarValue{std::nullopt, *one.literal};
  }
  bool plus = one.opcode == "add";
  if (!plus && one.opcode != "subtract") return std::nullopt;
  ++depth_;
  std::optional<ScalarValue> a = read(operand(made, 0));
  std::optional<ScalarValue> b = a ? read(operand(made, 1)) : std::nullopt;
  --depth_;
  if (!a || !b || (a->variable && b->variable) || (b->variable && !plus)) return std::nullopt;
  ScalarValue sum{a->variable ? a->variable : b->variable,
                  plus ? a->offset + b->offset : a->offset - b->offset};
  if (sum.offset > kMostValue || sum.offset < -kMostValue) return std::nullopt;
  return sum;
}

}  // namespace meshard::internal
