// The functions that a scenario calls by their names in torch, on meshard's public API.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::conformance {

/// The result of the function `name`; none if it is unknown.
/// @param args tensors and numbers, in the function's order
/// @param keywords its other arguments, by their names in torch
std::optional<Tensor> compute(const std::string& name, const std::vector<In>& args,
                              const nlohmann::json& keywords);

/// `add_`, `sub_`, ...: changes `target`. Returns false if the name is unknown.
bool compute_in_place(const std::string& name, Tensor& target, In arg);

}  // namespace meshard::conformance
