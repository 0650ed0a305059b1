// Meshes and what refused them, as torch_xla's cases record both.
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

/// What `work` gives, with `ok` true; or `{ok: false, error: {category, message}}` if it throws an
/// Error.
Json variant_answer(const std::function<Json()>& work);

/// Compares one variant of a case: equal answers, errors of one category, or a rule.
/// @param devices how many devices the input has, for the rule; 0 if the rule does not apply
Verdict judge_variant(const Json& ours, const Json& recorded, std::size_t devices);

}  // namespace meshard::conformance
