#include <charconv>
#include <deque>
#include <string_view>

#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

// ---- Constant folding of integers, without running the module.

constexpr int kMostReads = 128;
constexpr std::int64_t kMostValue = std::int64_t{1} << 48;  // keeps sums from overflowing

// True if the op passes its first operand on unchanged, also when that is a tuple.
bool is_passed_on(std::string_view opcode) {
  return opcode == "copy" || opcode == "bitcast" || opcode == "reshape" || opcode == "convert" ||
         opcode == "optimization-barrier" || opcode == "opt-barrier" || opcode == "domain" ||
         opcode == "add-dependency" || opcode == "copy-done";
}

// An integer: `offset`, or element `variable` of the loop state plus `offset`.
struct ScalarValue {
  std::optional<std::int64_t> variable;
  std::int64_t offset = 0;
  friend bool operator==(const ScalarValue&, const ScalarValue&) = default;
};

// What the parameters of a computation refer to.
struct ScalarFrame {
  enum class Kind {
    kAnyCall,  //< the operands of its only call
    kState,    //< the loop state at the start of an iteration; its elements are variables
    kCall,     //< the operands of `call`, in `caller`
  };
  Kind kind = Kind::kAnyCall;
  const InstructionIndex* caller = nullptr;
  const HloInstruction* call = nullptr;
  const ScalarFrame* outer = nullptr;  // frame of the caller
};

// An instruction with the context needed to evaluate it.
struct ScalarPlace {
  const InstructionIndex* computation = nullptr;
  const HloInstruction* instruction = nullptr;  // null: unknown
  const ScalarFrame* frame = nullptr;
  // Index path of the element to read, innermost tuple first.
  std::vector<std::int64_t> path = {};
};

// Traces values to the instructions that define them. The number of steps over its lifetime is
// bounded, which limits the cost of malformed modules; create a new reader for each query.
class ScalarReader {
 public:
  ScalarReader(const ModuleIndex& module, const Calls& calls) : module_(module), calls_(calls) {}

  // The instruction that defines the value, looking through instructions that pass it on
  // unchanged. For a loop variable it is the parameter, and `path` selects its element.
  ScalarPlace source(ScalarPlace place);
  // The value; none if it is not representable as a ScalarValue.
  std::optional<ScalarValue> read(const ScalarPlace& place);
  // Operand `number` of the place's instruction.
  static ScalarPlace operand(const ScalarPlace& of, std::size_t number);
  // The result of a loop's body or condition, with the loop state as variables.
  ScalarPlace result_of_iteration(const InstructionIndex& computation,
                                  std::optional<std::int64_t> element);
  // True if the loop body returns the element unchanged.
  bool is_unchanged(const InstructionIndex& body, std::int64_t element);

 private:
  ScalarPlace step(const ScalarPlace& place);
  ScalarPlace parameter(const ScalarPlace& place);
  ScalarPlace through_loop(const ScalarPlace& place);
  ScalarPlace into_call(const ScalarPlace& place);

  const ModuleIndex& module_;
  const Calls& calls_;
  std::deque<ScalarFrame> frames_;
  int steps_left_ = 4096;
  int depth_ = 0;
};

const ScalarPlace kNowhere = {};

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
  if (body == nullptr || place.path.empty() || depth_ > kMostReads) return kNowhere;
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
  if (made.instruction == nullptr || depth_ > kMostReads) return std::nullopt;
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

// ---- Trip counts.

// Reads `"known_trip_count":{"n":"12"}` from the backend config.
std::optional<std::int64_t> count_from_config(std::string_view config) {
  std::size_t at = config.find("\"known_trip_count\"");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = config.substr(at);
  rest = rest.substr(0, rest.find('}'));
  std::size_t n = rest.find("\"n\"");
  std::size_t digit = n == std::string_view::npos ? n : rest.find_first_of("0123456789", n);
  if (digit == std::string_view::npos) return std::nullopt;
  std::int64_t count = 0;
  auto [end, error] = std::from_chars(rest.data() + digit, rest.data() + rest.size(), count);
  return error == std::errc() ? std::optional(count) : std::nullopt;
}

// The operator OP' with which `a OP b` equals `b OP' a`.
std::string_view mirrored(std::string_view direction) {
  if (direction == "LT") return "GT";
  if (direction == "GT") return "LT";
  if (direction == "LE") return "GE";
  if (direction == "GE") return "LE";
  return direction;
}

// Iterations of `for (i = start; i OP limit; i += step)`.
std::optional<std::int64_t> iterations(std::int64_t start, std::int64_t step,
                                       std::string_view direction, std::int64_t limit) {
  std::int64_t way = limit - start;
  if (direction == "LE") ++way;
  if (direction == "GE") --way;
  bool up = direction == "LT" || direction == "LE";
  if (up || direction == "GT" || direction == "GE") {
    if (up ? way <= 0 : way >= 0) return 0;
    if (up ? step <= 0 : step >= 0) return std::nullopt;  // never terminates
    return way / step + (way % step != 0);
  }
  if (direction == "EQ")
    return way != 0 ? 0 : step != 0 ? std::optional(std::int64_t{1}) : std::nullopt;
  if (direction != "NE" || (way != 0 && step == 0)) return std::nullopt;
  if (way == 0) return 0;
  if (way % step != 0 || way / step < 0) return std::nullopt;
  return way / step;
}

class LoopReader {
 public:
  LoopReader(const ModuleIndex& module, const Calls& calls, const InstructionIndex& computation,
             const HloInstruction& loop)
      : reader_(module, calls),
        computation_(computation),
        loop_(loop),
        body_(module.called(loop, 0)),
        condition_(module.called(loop, 1)) {}

  std::optional<std::int64_t> count() {
    if (body_ == nullptr || condition_ == nullptr) return std::nullopt;
    ScalarPlace test = reader_.source(reader_.result_of_iteration(*condition_, std::nullopt));
    if (test.instruction == nullptr || test.instruction->opcode != "compare") return std::nullopt;
    std::optional<ScalarValue> left = reader_.read(ScalarReader::operand(test, 0));
    std::optional<ScalarValue> right = reader_.read(ScalarReader::operand(test, 1));
    if (!left || !right) return std::nullopt;
    std::string_view direction = test.instruction->comparison_direction;
    *left = with_constants(*left);
    *right = with_constants(*right);
    if (right->variable) {
      std::swap(*left, *right);
      direction = mirrored(direction);
    }
    if (right->variable) return std::nullopt;  // both sides change
    if (!left->variable) return iterations(left->offset, 0, direction, right->offset);
    std::optional<ScalarValue> next =
        reader_.read(reader_.result_of_iteration(*body_, *left->variable));
    if (!next || next->variable != left->variable) return std::nullopt;
    std::optional<std::int64_t> start = first(*left->variable);
    if (!start) return std::nullopt;
    return iterations(*start + left->offset, next->offset, direction, right->offset);
  }

 private:
  // An element of the loop state before the first iteration.
  std::optional<std::int64_t> first(std::int64_t element) {
    static const ScalarFrame kAnyCall = {};
    ScalarPlace place{&computation_, computation_.operand(loop_, 0), &kAnyCall, {element}};
    std::optional<ScalarValue> value = reader_.read(place);
    if (!value || value->variable) return std::nullopt;
    return value->offset;
  }

  // Replaces a variable that no iteration changes by its initial value.
  ScalarValue with_constants(const ScalarValue& value) {
    if (!value.variable || !reader_.is_unchanged(*body_, *value.variable)) return value;
    std::optional<std::int64_t> start = first(*value.variable);
    return start ? ScalarValue{std::nullopt, *start + value.offset} : value;
  }

  ScalarReader reader_;
  const InstructionIndex& computation_;
  const HloInstruction& loop_;
  const InstructionIndex* body_;
  const InstructionIndex* condition_;
};

}  // namespace

std::optional<std::int64_t> trip_count(const ModuleIndex& module, const Calls& calls,
                                       const InstructionIndex& computation,
                                       const HloInstruction& loop) {
  if (auto count = count_from_config(loop.backend_config); count && *count >= 0) return count;
  return LoopReader(module, calls, computation, loop).count();
}

}  // namespace meshard
