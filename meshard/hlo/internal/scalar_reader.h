// Constant folding of integers in a compiled module, without running it. Private to meshard/hlo.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "meshard/hlo/calls.h"

namespace meshard::internal {

/// An integer: `offset`, or element `variable` of the loop state plus `offset`.
struct ScalarValue {
  std::optional<std::int64_t> variable;
  std::int64_t offset = 0;
  friend bool operator==(const ScalarValue&, const ScalarValue&) = default;
};

/// What the parameters of a computation refer to.
struct ScalarFrame {
  enum class Kind {
    kAnyCall,  ///< the operands of its only call
    kState,    ///< the loop state at the start of an iteration; its elements are variables
    kCall,     ///< the operands of `call`, in `caller`
  };
  Kind kind = Kind::kAnyCall;
  const InstructionIndex* caller = nullptr;
  const HloInstruction* call = nullptr;
  const ScalarFrame* outer = nullptr;  // frame of the caller
};

/// An instruction with the context needed to evaluate it.
struct ScalarPlace {
  const InstructionIndex* computation = nullptr;
  const HloInstruction* instruction = nullptr;  // null: unknown
  const ScalarFrame* frame = nullptr;
  /// Index path of the element to read, innermost tuple first.
  std::vector<std::int64_t> path = {};
};

/// Traces values to the instructions that define them. The number of steps over its lifetime is
/// bounded, which limits the cost of malformed modules; create a new reader for each query.
class ScalarReader {
 public:
  ScalarReader(const ModuleIndex& module, const Calls& calls) : module_(module), calls_(calls) {}

  /// The instruction that defines the value, looking through instructions that pass it on
  /// unchanged. For a loop variable it is the parameter, and `path` selects its element.
  ScalarPlace source(ScalarPlace place);
  /// The value; none if it is not representable as a ScalarValue.
  std::optional<ScalarValue> read(const ScalarPlace& place);
  /// Operand `number` of the place's instruction.
  static ScalarPlace operand(const ScalarPlace& of, std::size_t number);
  /// The result of a loop's body or condition, with the loop state as variables.
  ScalarPlace result_of_iteration(const InstructionIndex& computation,
                                  std::optional<std::int64_t> element);
  /// True if the loop body returns the element unchanged.
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

}  // namespace meshard::internal
