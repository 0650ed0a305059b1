// Operation counts of instructions of a compiled module.
#pragma once
#include "meshard/hlo/module.h"

namespace meshard {

/// Value type: operation counts of one element type, by kind.
struct OperationCount {
  /// Multiplications and additions of matrix products and convolutions: two for each product term.
  double matrix = 0;
  /// Other arithmetic: one operation per element. Counts the result elements of an element-wise
  /// operation and the operand elements of an all-reduce or reduce-scatter.
  double other = 0;
  /// exp, tanh, ...: one for each result element.
  double transcendentals = 0;
  friend bool operator==(const OperationCount&, const OperationCount&) = default;
};

/// Operations of one instruction, excluding the computations it calls. Follows XLA's
/// HloCostAnalysis (xla/service/hlo_cost_analysis.cc): a dot has two operations for each result
/// element and each term of the sum; a convolution has two for each term that does not fall on
/// padding or between the elements of a dilated operand; comparisons, selects and conversions count
/// as arithmetic; data movement counts as 0. Matrix products that a compiler turned into library
/// calls (`__cublas$gemm`, `__cudnn$conv...`) are counted from their shapes.
OperationCount operations_of(const InstructionIndex& computation,
                             const HloInstruction& instruction);

/// How often one execution of a reduction, map, sort or scatter applies its computation. A
/// reduce-window whose window covers a whole dimension at every position counts as one reduction of
/// that dimension.
double applications_of(const InstructionIndex& computation, const HloInstruction& instruction);

/// The element type used for the arithmetic: the first operand's, else the instruction's own.
pjrt::ElementType computed_type(const InstructionIndex& computation,
                                const HloInstruction& instruction);

}  // namespace meshard
