// Finds what the collectives of a compiled module are for.
#pragma once
#include <string>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/hlo/executions.h"

namespace meshard {

/// Names in the program, one for each argument and result; empty if unnamed.
struct BoundaryNames {
  std::vector<std::string> arguments, results;
};

/// The collectives with their purposes, and for those that name only an argument, with the op that
/// uses the result as their origin. The purpose follows from the data flow of the compiled module:
///
/// - A gather or exchange of a value that is only moved, converted, cut or joined since it was
///   an argument is of that argument. It is a weight if the program also has a new value for it.
/// - A reduction in the backward pass whose result reaches a result of the program through
///   operations on single elements is the sum of the gradient of the argument that the result
///   replaces: the argument with the same shard and the longest common end of the names, or the
///   one whose memory the result reuses, among those that the model itself reads, which the
///   optimizer's state is not.
/// - A gather of the optimizer's result is of the update of that argument.
/// - Everything else between layers is activations. The purpose is unknown if none of this is
///   certain.
///
/// The phase comes from `phases`, and the layer from the names of the ops: of the collective itself
/// or else of the ops that use its result.
/// @pre the collectives were found in this module
std::vector<Collective> with_purposes(const Executions& executions, const BoundaryNames& names,
                                      const ProgramPhases& phases,
                                      std::vector<Collective> collectives);

}  // namespace meshard
