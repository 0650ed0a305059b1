// Meshes, and errors that reject them, as recorded in torch_xla's cases.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "meshard/mesh/mesh.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The case's `axis_names`.
std::optional<std::vector<std::string>> names_of(const Json& axis_names);

/// `[[axis name or index, size], ...]`.
Json named_shape(const Mesh& mesh);

/// The result of `work`, with `ok` true; or `{ok: false, error: {category, message}}` if it throws
/// an Error.
Json variant_answer(const std::function<Json()>& work);

/// Compares one variant of a case: equal answers, errors with equal categories, or a rule.
/// @param devices the number of devices of the input, for the rule; 0 if the rule does not apply
Verdict judge_variant(const Json& ours, const Json& recorded, std::size_t devices);

}  // namespace meshard::conformance
