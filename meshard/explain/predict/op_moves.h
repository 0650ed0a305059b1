// Predicts the moves that the ops of a program need for given shardings.
#pragma once
#include <vector>

#include "meshard/explain/predict/module_program.h"
#include "meshard/explain/predict/predict.h"

namespace meshard {

/// Value type: what one device does in one execution of a matrix product or convolution.
struct ProductWork {
  /// The number of the op in the program.
  std::size_t op = 0;
  /// Multiplications and additions.
  double flops = 0;
  /// Bytes of the shards of its operands and results.
  double memory_bytes = 0;
};

/// Value type: the predicted moves of a program, in program order.
struct ProgramMoves {
  std::vector<PredictedMove> moves;
  /// The program's products, in program order.
  std::vector<ProductWork> products;
  /// The number of ops that are left out: those with a value that is not known.
  std::size_t left_out = 0;
};

/// Ops without operands do not move anything: each device creates its part. A value that was
/// brought to a sharding for one op is not moved to it again, as far as the value is still there: a
/// value that was moved in a loop or branch is moved again outside of it.
ProgramMoves predict_moves(const Mesh& mesh, const RuledProgram& program,
                           const std::vector<PartialSharding>& values);

}  // namespace meshard
