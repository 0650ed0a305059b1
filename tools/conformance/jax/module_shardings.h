// The shardings of a small program, as printed in its module text.
#pragma once
#include <nlohmann/json.hpp>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding.h"

namespace meshard::conformance {

/// The shardings of a program that returns its argument, which has this sharding: `{mesh_ops, args,
/// results, constraints, num_partitions}`.
nlohmann::json identity_shardings(const Sharding& sharding, const Shape& shape);

/// The shardings of a program that constrains its argument: `{mesh_ops, constraints}`.
nlohmann::json constraint_shardings(const Sharding& sharding, const Shape& shape);

}  // namespace meshard::conformance
