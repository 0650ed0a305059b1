// Whole numbers of a compiled module that can be known without running it. Private to meshard/hlo.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "meshard/hlo/calls.h"

namespace meshard::internal {

/// A number: `offset`, or element `variable` of a loop's state plus `offset`.
struct ScalarValue {
  std::optional<std::int64_t> variable;
  std::int64_t offset = 0;
  friend bool operator==(const ScalarValue&, const ScalarValue&) = default;
};

/// What the parameters of a computation stand for.
struct ScalarFrame {
  enum class Kind {
    kAnyCall,  ///< whatever its only caller gives
    kState,    ///< the state at the begin of an iteration: its elements are variables
    kCall,     ///< the operands of `call`, in `caller`
  };
  Kind kind = Kind::kAnyCall;
  const InstructionIndex* caller = nullptr;
  const pjrt::HloInstruction* call = nullptr;
  const ScalarFrame* outer = nullptr;  // of the caller
};

/// An instruction with what is needed to read it.
struct ScalarPlace {
  const InstructionIndex* computation = nullptr;
  const pjrt::HloInstruction* instruction = nullptr;  // null: not known
  const ScalarFrame* frame = nullptr;
  /// Which element is meant, the innermost tuple first.
  std::vector<std::int64_t> path = {};
};

/// Follows values to where they are made. Takes a bounded number of steps over its life, so that
/// damaged modules cost little; a new one is made for each question.
class ScalarReader {
 public:
  ScalarReader(const ModuleIndex& module, const Calls& calls) : module_(module), calls_(calls) {}

  /// The instruction that makes the value, through whatever hands it on as it is. If that is a
  /// variable the instruction is the parameter, and `path` its element.
  ScalarPlace source(ScalarPlace place);
  /// The value, if it is one that ScalarValue can say.
  std::optional<ScalarValue> read(const ScalarPlace& place);
  /// The operand of a place's instruction.
  static ScalarPlace operand(const ScalarPlace& of, std::size_t number);
  /// The result of a loop's body or condition, with the state as variables.
  ScalarPlace result_of_iteration(const InstructionIndex& computation,
                                  std::optional<std::int64_t> element);
  /// True if the body hands the element on as it got it.
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
