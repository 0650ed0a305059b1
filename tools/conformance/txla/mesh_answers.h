// Meshes and what refused them, as torch_xla's cases record both.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "meshard/mesh/mesh.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The case's `axis_names`.
std::optional<std::vector<std::string>> names_of(const Json& axis_names);

/// Row-major values as nested lists.
Json nested(const std::vector<std::int64_t>& values, IntView shape);

/// `[[axis name or index, size], ...]`.
Json named_shape(const Mesh& mesh);

/// What `work` gives, with `ok` true; or `{ok: false, error: {category}}` if it throws an Error.
Json answer_or_category(const std::function<Json()>& work);

/// Compares one variant of a case: equal answers, errors of one category, or a rule.
/// @param devices how many devices the input has, for the rule; 0 if the rule does not apply
Verdict judge_variant(const Json& ours, const Json& recorded, std::size_t devices);

/// two-core-and-single-slice-meshes: the reference refuses chips with two devices and a single
/// slice with an index. The recorded answer is the error that says so, and ours is a mesh with
/// every device once.
bool two_core_and_single_slice_meshes(const Json& recorded_error, const Json& our_mesh,
                                      std::size_t devices);

}  // namespace meshard::conformance
