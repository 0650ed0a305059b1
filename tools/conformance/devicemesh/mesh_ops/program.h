// Runs a program of mesh_ops.json.
#pragma once
#include <nlohmann/json.hpp>

namespace meshard::conformance {

/// `{"expect": [an answer for each operation]}` and, if one failed, `"expect_error"`; null if an
/// operation is unknown.
nlohmann::json run_program(const nlohmann::json& input);

}  // namespace meshard::conformance
