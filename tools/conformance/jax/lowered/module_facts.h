// What a module says, in whatever words: meshes, shardings, donation, manual regions, products and
// collectives.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace meshard::conformance {

/// Of a StableHLO module with Shardy shardings, in the short or the generic form:
/// `{partitions, arguments: [{type, sharding, donated}], results: [{type, sharding}], constraints,
/// manual: [{in, out, axes}], ops}`. A sharding is its text with the mesh's axes in place of its
/// name; constraints and ops are sorted.
///
/// A constraint on what is returned counts as the result's sharding, and donation only where a
/// result has the argument's type. Of what enters a manual region only arguments count; of ops only
/// those that move data or multiply and sum it, with their groups and dimensions.
nlohmann::json module_facts(std::string_view text);

}  // namespace meshard::conformance
