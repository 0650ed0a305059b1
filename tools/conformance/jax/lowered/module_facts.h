// The meaning of a module, independent of its wording: meshes, shardings, donation, manual regions,
// products and collectives.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace meshard::conformance {

/// The facts of a StableHLO module with Shardy shardings, in short or generic form: `{partitions,
/// arguments: [{type, sharding, donated}], results: [{type, sharding}], constraints, manual: [{in,
/// out, axes}], ops}`. A sharding is its text, with the mesh's axes in place of the mesh name.
/// Constraints and ops are sorted.
///
/// A constraint on a returned value counts as the result's sharding, and donation counts only if a
/// result has the argument's type. Of a manual region's operands, only arguments count. Of the ops,
/// only those that move, multiply or sum data count, with their groups and dimensions.
nlohmann::json module_facts(std::string_view text);

}  // namespace meshard::conformance
