// How much an instruction of a compiled module computes.
#pragma once
#include "meshard/hlo/module_index.h"

namespace meshard {

/// A value: operations of one kind on one type.
struct OperationCount {
  /// Multiplications and additions of matrix products and convolutions: two for each pair.
  double matrix = 0;
  /// One for each element that an element-wise operation makes, or a reduction takes.
  double other = 0;
  /// exp, tanh, ...: one for each element.
  double transcendentals = 0;
  friend bool operator==(const OperationCount&, const OperationCount&) = default;
};

/// What one instruction computes, without what it calls. Counts as XLA's HloCostAnalysis does
/// (xla/service/hlo_cost_analysis.cc), of which the rules are: a dot has two operations for each
/// element of the result and each term of the sum; a convolution two for each term that does not
/// fall on padding or between the elements of a dilated operand; a comparison, a selection and a
/// conversion count as arithmetic; data movement counts nothing. Matrix products that a compiler
/// turned into calls of a library (`__cublas$gemm`, `__cudnn$conv...`) are counted from their
/// shapes.
OperationCount operations_of(const InstructionIndex& computation,
                             const pjrt::HloInstruction& instruction);

/// How often a reduction, a map, a sort or a scatter applies the computation that it calls, each
/// time that it runs. A window that takes a whole dimension at each of its places counts as one
/// reduction of it.
double applications_of(const InstructionIndex& computation,
                       const pjrt::HloInstruction& instruction);

/// The type that an instruction computes in: that of its first operand, else its own.
pjrt::ElementType computed_type(const InstructionIndex& computation,
                                const pjrt::HloInstruction& instruction);

}  // namespace meshard
