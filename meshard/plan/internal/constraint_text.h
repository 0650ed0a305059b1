// Constraints as users write them.
#pragma once
#include <string>

#include "meshard/plan/explicit_shardings.h"

namespace meshard::internal {

/// Sets the source line and the constraints.
/// @param is_alone whether it is the only choice of its line
void write_constraint(const Sharding& sharding, ConstraintWords words, bool is_alone,
                      ChosenSharding& shown);

}  // namespace meshard::internal
