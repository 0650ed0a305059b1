// Predicts the moves that the ops of a program need for given shardings.
#pragma once
#include <functional>
#include <vector>

#include "meshard/explain/predict/predict.h"
#include "meshard/explain/predict/ruled_program.h"

namespace meshard {

/// Calls `visit` with each predicted move and the number of its op, in program order. Ops with a
/// value that is not known are left out, and so are ops without operands: each device creates its
/// part. A value that was brought to a sharding for one op is not moved to it again.
/// @return the number of ops with a value that is not known
std::size_t predict_moves(const Mesh& mesh, const RuledProgram& program,
                          const std::vector<PartialSharding>& values,
                          const std::function<void(std::size_t op, PredictedMove move)>& visit);

}  // namespace meshard
